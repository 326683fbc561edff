"""`unisono down`: stop the embedded cluster of a folder."""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from unisono.cli.help_format import HelpFormat
from unisono.runtime.instance import Instance, InstanceError, default_directory

_PATIENCE_SECONDS = 15.0


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    found = argparse.ArgumentParser(
        description="Stop the embedded cluster of a folder; its state stays.",
        epilog="examples:\n  unisono down\n  unisono down --data-dir /tmp/try",
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    found.add_argument(
        "--data-dir", type=Path, default=None, metavar="DIR", help="the folder of the cluster"
    )
    return found


def run(arguments: argparse.Namespace) -> int:
    """Ask the process to stop, and wait until it has."""
    instance = Instance(arguments.data_dir or default_directory())
    pid = instance.pid()
    if not instance.is_running() or not pid:
        print(f"nothing runs in {instance.directory}")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while instance.is_running():
        if time.monotonic() > deadline:
            raise InstanceError(f"process {pid} does not stop; end it with: kill -9 {pid}")
        time.sleep(0.02)
    print(f"stopped {instance.directory}")
    return 0
