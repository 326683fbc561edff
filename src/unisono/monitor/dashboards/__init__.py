"""Grafana dashboards: made by `tools/dashboards`, shipped as data."""
