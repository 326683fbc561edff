"""`unisono crds`: our kinds as CustomResourceDefinitions, for a cluster with its own API server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

import yaml

from unisono.cli.help_format import HelpFormat
from unisono.cli.objects import PLAIN
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.shapes.crds import crds_of, custom_groups

EPILOG = """\
examples:
  unisono crds | kubectl apply --server-side -f -
  unisono crds kueue.x-k8s.io jobset.x-k8s.io > crds.yaml
  unisono crds -o json ray.io

A cluster that has a group already keeps its own definitions: do not print that group for it. Older
versions of a kind are printed only if they differ from the stored one in nothing but the name.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = argparse.ArgumentParser(
        prog="unisono crds",
        description="Print CustomResourceDefinitions of the kinds that Kubernetes itself lacks.",
        epilog=EPILOG,
        formatter_class=HelpFormat,
    )
    made.add_argument(
        "groups", metavar="GROUP", nargs="*", help=f"all by default: {', '.join(custom_groups())}"
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("yaml", "json"),
        default="yaml",
        help="output format (default: yaml)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print the definitions."""
    known = custom_groups()
    for group in arguments.groups:
        if group not in known:
            hint = did_you_mean(group, known) or f"; there are {', '.join(known)}"
            raise InvalidManifest("", f"group {group!r} has no kinds to define{hint}")
    definitions = crds_of(arguments.groups or known)
    if arguments.output == "json":
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(definitions)}, sys.stdout)
        sys.stdout.write("\n")
    else:
        write_yaml(definitions)
    return 0


def write_yaml(definitions: Iterable[dict[str, Any]]) -> None:
    """Write documents one by one: a reader of the first does not wait for the last."""
    for definition in definitions:
        sys.stdout.write("---\n")
        yaml.dump(
            definition,
            sys.stdout,
            Dumper=PLAIN,
            sort_keys=False,
            default_flow_style=None,  # what fits on a line stands on a line
            width=120,
        )
