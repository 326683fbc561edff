"""Slurm's commands on our API: arguments in, output and exit code out.

Each module has `run(arguments, context) -> Outcome`. Nothing here prints, and nothing looks at the
clock: `Context` has the user, the time, files and a client of the API.
"""
