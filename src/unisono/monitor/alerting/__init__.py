"""Alerts without a Prometheus: an embedded cluster evaluates its own.

conditions.py  which conditions of the alert rules hold now, by the names of the rules
evaluator.py   for how long each has held: pending, then firing
"""
