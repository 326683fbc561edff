"""`unisono monitor`: rules, scraping, routing and dashboards, for the Prometheus you have."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from unisono.cli.help_format import HelpFormat
from unisono.engine.model.errors import InvalidManifest
from unisono.runtime.instance import Instance, default_directory

_WHAT = ("rules", "rule-tests", "scrape-config", "alertmanager", "counters", "dashboards")

_EXAMPLES = """\
examples:
  unisono monitor rules > unisono-rules.yaml
  unisono monitor rules --operator --namespace monitoring | kubectl apply -f -
  unisono monitor rule-tests > rule-tests.yaml && promtool test rules rule-tests.yaml
  unisono monitor scrape-config --out prometheus/
  unisono monitor alertmanager --webhook http://127.0.0.1:9999/
  unisono monitor counters > counters.csv && dcgm-exporter --collectors counters.csv
  unisono monitor dashboards --out dashboards/
  prometheus --config.file=prometheus/prometheus.yml

`scrape-config` names the addresses of the instance of --data-dir if it runs, else the usual ones.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        description="Print what Prometheus, Alertmanager and Grafana need to watch a cluster: "
        "rules and their unit tests, a configuration that scrapes, an example of routing, the"
        " counters that a dcgm-exporter should export, dashboards.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    made.add_argument("what", choices=_WHAT)
    made.add_argument("--out", type=Path, metavar="DIR", help="write files to this folder instead")
    made.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="a cluster of `unisono up`, by its folder"
    )
    made.add_argument(
        "--operator",
        action="store_true",
        help="print objects for the Prometheus operator and Grafana's sidecar",
    )
    made.add_argument(
        "--namespace",
        "-n",
        default="monitoring",
        metavar="NS",
        help="the namespace of these objects (default: monitoring)",
    )
    made.add_argument(
        "--release",
        default="prometheus",
        metavar="NAME",
        help="the release label that the operator selects (default: prometheus)",
    )
    made.add_argument(
        "--runbooks",
        default=None,
        metavar="URL",
        help="the address of the explanations that alerts link to",
    )
    made.add_argument(
        "--webhook",
        default="http://127.0.0.1:9999/alerts",
        metavar="URL",
        help="the receiver of Alertmanager's notifications (default: %(default)s)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print it, or write the files."""
    files = _files(arguments)
    if arguments.out is None:
        if len(files) > 1:
            raise InvalidManifest("--out", f"these are {len(files)} files; say where: --out DIR")
        print(next(iter(files.values())), end="")
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = arguments.out / name
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


def _files(arguments: argparse.Namespace) -> Mapping[str, str]:
    from unisono.monitor import dashboards
    from unisono.monitor.rules import files as rules

    runbooks = arguments.runbooks or rules.RUNBOOKS
    match arguments.what:
        case "rules" if arguments.operator:
            made = rules.prometheus_rule(arguments.namespace, arguments.release, runbooks)
            return {"prometheusrule.yaml": made}
        case "rules":
            return {"unisono-rules.yaml": rules.rule_file(runbooks)}
        case "rule-tests":
            return {"unisono-rule-tests.yaml": rules.rule_tests()}
        case "counters" if arguments.operator:
            made = rules.counters_config_map(arguments.namespace)
            return {"dcgm-counters.yaml": made}
        case "counters":
            return {"counters.csv": rules.counters()}
        case "alertmanager":
            return {"alertmanager.yml": rules.alertmanager(arguments.webhook)}
        case "dashboards" if arguments.operator:
            return {"dashboards.yaml": dashboards.config_maps(arguments.namespace)}
        case "dashboards":
            return dashboards.provisioned()
        case _:
            return _scraping(arguments, runbooks)


def _scraping(arguments: argparse.Namespace, runbooks: str) -> Mapping[str, str]:
    """Return a configuration; with a folder to write to, the rules lie beside it."""
    from unisono.monitor.rules import files as rules

    remembered = Instance(arguments.data_dir or default_directory()).remembered()
    metrics = _address(remembered.get("metrics"), 9401)
    gpus = _address(remembered.get("gpus"), 9400)
    if arguments.out is None:
        return {"prometheus.yml": rules.scrape_config(metrics=[metrics], gpus=[gpus])}
    name = "unisono-rules.yaml"
    return {
        "prometheus.yml": rules.scrape_config(metrics=[metrics], gpus=[gpus], rules=name),
        name: rules.rule_file(runbooks),
        "unisono-rule-tests.yaml": rules.rule_tests(name),
    }


def _address(remembered: object, usual: int) -> str:
    """Return host and port of a page that an instance has, or where one would be."""
    if not isinstance(remembered, str):
        return f"127.0.0.1:{usual}"
    return remembered.removeprefix("http://").partition("/")[0]
