"""Telemetry of simulated GPUs, as NVIDIA's dcgm-exporter writes it.

assignments.py  which pod has which device
devices.py      how devices behave: columns that move with time
exporter.py     the exporter's fields, their values from those columns, and the text
"""
