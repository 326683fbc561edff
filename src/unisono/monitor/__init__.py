"""Measures and tells: metrics, simulated GPU telemetry, alert rules, dashboards.

books.py       what is known of nodes, pods, workloads and queues, kept up to date by changes
records.py     the little of each object that figures need
metrics/       figures from the books, one module for each subject; `page.py` gathers them
dcgm/          telemetry of simulated GPUs, as NVIDIA's exporter writes it
rules/         recording and alert rules as data, and the files they become
dashboards/    Grafana dashboards, made by `tools/dashboards`
"""
