"""The command line: parse, call, render. Nothing here decides anything.

Each command is one module that offers `parser()` and `run(arguments)`; `main` finds it.
"""
