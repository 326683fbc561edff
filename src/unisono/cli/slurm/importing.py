"""`unisono slurm import`: a slurm.conf, accounts and QOS as queues, flavors and policies."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unisono.slurm.conf import read_conf
from unisono.slurm.imports.convert import Imported, imported
from unisono.slurm.imports.sacctmgr import QOS_COLUMNS, read_dump, read_qos

NAME = "import"
HELP = "turn a slurm.conf into queues, flavors and policies"
DESCRIPTION = f"""\
Print a Slurm configuration as our objects, and report every key on stderr.

  sacctmgr dump CLUSTER file=hpc.cfg                          gives --assoc
  sacctmgr -P show qos format={",".join(QOS_COLUMNS[:3])},… > qos.txt    gives --qos

Without a heading, the columns of the QOS are taken to be
{", ".join(QOS_COLUMNS)}.

examples:
  unisono slurm import slurm.conf > hpc.yaml
  unisono slurm import slurm.conf --assoc hpc.cfg --qos qos.txt --dir hpc/"""


def add_arguments(one: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    one.add_argument("conf", type=Path, metavar="SLURM.CONF")
    one.add_argument("--assoc", type=Path, metavar="FILE", help="the output of sacctmgr dump")
    one.add_argument("--qos", type=Path, metavar="FILE", help="the output of sacctmgr show qos")
    one.add_argument(
        "-n",
        "--namespace",
        default="default",
        metavar="NS",
        help="the namespace of LocalQueues (default: default)",
    )
    one.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        help="write queues.yaml, policy.yaml and nodes.yaml to this folder instead",
    )
    one.add_argument("--nodes", action="store_true", help="also print nodes")
    one.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="output format (default: yaml)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    made = _read(arguments)
    if arguments.output == "json":
        import json

        sys.stdout.write(json.dumps(_whole(made), indent=2) + "\n")
        return 0
    if arguments.dir is not None:
        arguments.dir.mkdir(parents=True, exist_ok=True)
        for name, documents in (
            ("queues.yaml", made.queues),
            ("policy.yaml", made.policies),
            ("nodes.yaml", made.nodes),
        ):
            (arguments.dir / name).write_text(_yaml(documents), encoding="utf-8")
    else:
        nodes = made.nodes if arguments.nodes else []
        sys.stdout.write(_yaml([*made.documents, *nodes]))
    sys.stderr.write(made.report.text())
    return 0


def _read(arguments: argparse.Namespace) -> Imported:
    path: Path = arguments.conf
    text = path.read_text(encoding="utf-8")

    def include(name: str) -> str | None:
        found = Path(name) if Path(name).is_absolute() else path.parent / name
        return found.read_text(encoding="utf-8") if found.is_file() else None

    dump = qos = None
    if arguments.assoc is not None:
        dump = read_dump(arguments.assoc.read_text(encoding="utf-8"), str(arguments.assoc))
    if arguments.qos is not None:
        qos = read_qos(arguments.qos.read_text(encoding="utf-8"))
    conf = read_conf(text, str(path), include)
    return imported(conf, dump=dump, qos=qos, namespace=arguments.namespace, text=text)


def _whole(made: Imported) -> dict[str, object]:
    fates = ("mapped", "approximated", "dropped")
    return {
        "documents": made.documents,
        "nodes": made.nodes,
        "warnings": made.report.warnings,
        **{
            fate: [
                {"what": line.what, "became": line.became, "place": line.place}
                for line in made.report.of(fate)  # type: ignore[arg-type]  # one of the three
            ]
            for fate in fates
        },
    }


def _yaml(documents: list[dict[str, object]]) -> str:
    import yaml

    return yaml.safe_dump_all(documents, sort_keys=False, width=100)
