"""Alerts without a Prometheus: an embedded cluster looks after itself.

conditions.py  what holds now of devices and nodes, by the names of the alert rules
gangs.py       the same of gangs and queues
columns.py     since when, for alerts about each of thousands of devices
watch.py       for how long it has held: pending, then firing
"""
