"""Slurm's programs on our API: arguments in, what they print and how they end out.

Each module has `run(arguments, context) -> Outcome`. Nothing here prints, and nothing looks at the
clock: `Context` brings what a program knows of its surroundings, and a way to the API.
"""
