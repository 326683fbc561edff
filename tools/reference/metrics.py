"""The page of all metrics, from what a scrape of an empty cluster names."""

from __future__ import annotations

from collections.abc import Iterable

from unisono.monitor.exposition import Family
from unisono.monitor.metrics.kueue import MOST_LOCAL_QUEUES
from unisono.monitor.metrics.registry import ALL, MetricsRegistry

_HEAD = """\
# Every metric

<!-- written by `make reference`; edit the families instead -->

What `/metrics` of an embedded cluster and of the controller has. Labels, and what they mean, are in
[monitoring](monitoring.md#metrics), where the telemetry of GPUs is, too; the controller's own
figures are in [controller](controller.md#health-and-figures).
"""


def page() -> str:
    """Return the page."""
    plain = list(MetricsRegistry(clock=lambda: 0.0, version="", mode="").families())
    known = {one.name for one in plain}
    every = MetricsRegistry(clock=lambda: 0.0, version="", mode="", compat=ALL).families()
    others = [one for one in every if one.name not in known]
    return (
        f"{_HEAD}\n{_table(plain)}\n## Kueue's names\n\n"
        "With Kueue's labels and buckets, of every resource, in both modes. Amounts are in units\n"
        "of the resource: cores, bytes, devices. LocalQueues of clusters with more than "
        f"{MOST_LOCAL_QUEUES:,} of them\nare left out.\n\n"
        f"{_table(one for one in others if one.name.startswith('kueue_'))}\n"
        "## Names of kube-state-metrics\n\n"
        "An embedded cluster has these, too, for dashboards of GPUs.\n\n"
        f"{_table(one for one in others if not one.name.startswith('kueue_'))}"
    )


def _table(families: Iterable[Family]) -> str:
    rows = [f"| `{one.name}` | {one.type} | {one.help} |" for one in families]
    return "| metric | type | says |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
