"""Observability: metrics, simulated GPU telemetry, alerts, the usage ledger and its reports.

records.py     what is needed of nodes, pods, workloads and queues, read once per version
cache.py       those records, kept up to date by changes
metrics/       Prometheus metrics from the cache, one module per subject; `registry.py` gathers them
dcgm/          telemetry of simulated GPUs, as NVIDIA's exporter writes it
rules/         recording and alert rules as data, and the files generated from them
alerting.py    the same alerts, evaluated without a Prometheus
dashboards/    Grafana dashboards, made by `tools/dashboards`
ledger/        GPU usage by workload, in SQLite
report/        usage and cost of a period, in every format
"""
