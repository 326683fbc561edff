"""`unisono status`: describe the embedded cluster of a folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from unisono.cli.help_format import HelpFormat
from unisono.runtime.instance import Instance, default_directory


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    found = argparse.ArgumentParser(
        description="Say whether the embedded cluster of a folder runs, and where.",
        epilog="examples:\n  unisono status\n  unisono status -o json",
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    found.add_argument(
        "--data-dir", type=Path, default=None, metavar="DIR", help="the folder of the cluster"
    )
    found.add_argument(
        "-o",
        "--output",
        choices=("text", "json"),
        default="text",
        help="output format (default: text)",
    )
    return found


def run(arguments: argparse.Namespace) -> int:
    """Print it; the answer no (exit code 1) means that nothing runs."""
    instance = Instance(arguments.data_dir or default_directory())
    is_running = instance.is_running()
    about = instance.remembered()
    size = instance.database.stat().st_size if instance.database.exists() else 0
    state = "starting" if instance.is_starting() else "running" if is_running else "stopped"
    facts = {
        "running": is_running,
        "dataDir": str(instance.directory),
        "databaseBytes": size,
        "url": about.get("url", "") if is_running else "",
        "pid": about.get("pid", 0) if is_running else 0,
        "kubeconfig": str(instance.kubeconfig) if instance.kubeconfig.exists() else "",
    }
    if arguments.output == "json":
        print(json.dumps(facts, indent=2, sort_keys=True))
    else:
        print(f"state       {state}")
        if state == "running":
            print(f"api         {facts['url']}")
        if is_running:
            print(f"process     {facts['pid']}")
        print(f"data        {facts['dataDir']} ({size // 1024} KiB)")
        if facts["kubeconfig"]:
            print(f"kubeconfig  export KUBECONFIG={facts['kubeconfig']}")
    return 0 if is_running else 1
