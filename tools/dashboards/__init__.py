"""Makes the Grafana dashboards of `unisono.monitor.dashboards` (`python -m tools.dashboards`)."""
