"""The package with its hot modules compiled by mypyc, as a copy in the user's cache (ADR 0024).

`modules.txt` lists what is compiled, `native.py` does it, `cache.py` keeps the copies and
`hatch_build.py` puts the same into a wheel. The sources stay as they are, and what runs from them
stays interpreted: an extension beside a module hides every later change of it.
"""
