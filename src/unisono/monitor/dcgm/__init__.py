"""Telemetry of simulated GPUs, as NVIDIA's dcgm-exporter writes it.

assignments.py  which pod has which device
devices.py      how devices behave: columns that move with time
fields.py       the exporter's fields, and their values from those columns
exporter.py     the text
"""
