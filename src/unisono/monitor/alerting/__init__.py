"""Alerts without a Prometheus: an embedded cluster looks after itself.

conditions.py  what holds now, by the names of the alert rules
watch.py       for how long it has held: pending, then firing
"""
