"""The options of sbatch, from the command line, the environment and the script (spec slurm §4).

    command line   wins over   SBATCH_* of the environment   wins over   #SBATCH lines of the script

`#SBATCH` lines count before the first line that is neither blank nor a comment. An empty value is
no value: templates leave `--gres=` behind, and a warning is enough.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from unisono.slurm.getopt import BadOption, Option, parse, table
from unisono.slurm.lite_typing import NamedTuple

_VALUED = """
array:a account:A bb bbf begin:b batch comment cpu-freq cpus-per-task:c dependency:d deadline
delay-boot chdir:D error:e export-file gid gres gres-flags input:i job-name:J licenses:L clusters:M
container container-image container-mounts container-workdir container-name container-env
distribution:m mail-type mail-user mcs-label ntasks:n ntasks-per-node nodes:N output:o open-mode
partition:p power priority profile qos:q core-spec:S signal switches thread-spec time:t time-min uid
wckey cluster-constraint constraint:C nodefile:F mem mincpus reservation tmp nodelist:w exclude:x
mem-per-cpu sockets-per-node cores-per-socket threads-per-core ntasks-per-core ntasks-per-socket
ntasks-per-gpu hint mem-bind cpu-bind extra-node-info:B cpus-per-gpu gpus:G gpu-bind gpu-freq
gpus-per-node gpus-per-socket gpus-per-task mem-per-gpu acctg-freq prefer segment extra tres-bind
tres-per-task kill-on-invalid-dep wrap environment stepmgr
"""
_OPTIONAL = "export nice no-kill:k propagate exclusive get-user-env requeue"
_PLAIN = """
hold:H ignore-pbs no-requeue overcommit:O parsable quiet:Q reboot oversubscribe:s spread-job
use-min-nodes verbose:v wait:W test-only contiguous help:h usage version:V container-mount-home
no-container-mount-home container-writable container-readonly container-remap-root
no-container-remap-root container-entrypoint no-container-entrypoint
"""
# Ours: how to reach the cluster, and whether unknown directives are ignored (`--lenient`).
_OURS = "namespace data-dir kubeconfig context"


def _listed(text: str, takes: str) -> list[Option]:
    pairs = (word.partition(":") for word in text.split())
    return [Option(long, short, takes) for long, _, short in pairs]  # type: ignore[arg-type]  # one of three


KNOWN = table(
    *_listed(_VALUED, "value"),
    *_listed(_OPTIONAL, "optional"),
    *_listed(_PLAIN, "nothing"),
    *_listed(_OURS, "value"),
    Option("lenient", "", "nothing"),
)
# Environment variables that are not called like their option.
_VARIABLES = {
    "SBATCH_ARRAY_INX": "array",
    "SBATCH_TIMELIMIT": "time",
    "SBATCH_MEM_PER_NODE": "mem",
    "SBATCH_WAIT_ALL_NODES": "",
    "SBATCH_IGNORE_PBS": "",
    "SBATCH_DEBUG": "",
    "SBATCH_REQ_SWITCH": "switches",
    "SBATCH_WAIT4SWITCH": "",
    "SLURM_HINT": "hint",
}
_FLAGS = frozenset(_PLAIN.replace(":", " ").split())


class Asked(NamedTuple):
    """What a call of sbatch asks for."""

    options: dict[str, str]
    words: list[str]  # the script and its arguments
    warnings: list[str]


def given(arguments: Sequence[str]) -> Asked:
    """Read the command line; raise BadOption."""
    found = parse(arguments, KNOWN, ends_at_word=True)
    options, warnings = _without_empty(found.options)
    return Asked(options, found.words, warnings)


def of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options that the environment sets."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        if not name.startswith("SBATCH_") and name not in _VARIABLES:
            continue
        long = _VARIABLES.get(name, name.removeprefix("SBATCH_").lower().replace("_", "-"))
        if f"--{long}" in KNOWN and (value or long in _FLAGS):
            found[long] = value if long not in _FLAGS else ""
    return found


def of_script(text: str, *, lenient: bool = False) -> Asked:
    """Return the options of a script; raise BadOption with the line.

    >>> of_script("#!/bin/sh\\n#SBATCH -N 2 --job-name='my job'\\nsrun x\\n#SBATCH -N 9\\n").options
    {'nodes': '2', 'job-name': 'my job'}
    """
    found: dict[str, str] = {}
    warnings: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        if not line.startswith("#SBATCH"):
            continue
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        except ValueError as error:
            raise BadOption(f"line {number}: {error}: {stripped}") from None
        try:
            read = parse(words, KNOWN)
            if read.words:
                raise BadOption(f"Invalid directive found in batch script: {read.words[0]}")
        except BadOption as error:
            if not lenient:
                raise BadOption(f"line {number}: {error}") from None
            warnings.append(f"line {number} is ignored: {error}")
            continue
        options, more = _without_empty(read.options)
        warnings += [f"line {number}: {one}" for one in more]
        found |= options
    return Asked(found, [], warnings)


def together(
    script: Mapping[str, str], environment: Mapping[str, str], line: Mapping[str, str]
) -> dict[str, str]:
    """Return the options that count."""
    found = {**script, **environment, **line}
    # The last word about one thing also silences what was said before in other words.
    for ahead in (environment, line):
        for group in _SAME_THING:
            if any(name in ahead for name in group):
                for name in group:
                    if name not in ahead:
                        found.pop(name, None)
    return found


_SAME_THING = (
    ("mem", "mem-per-cpu", "mem-per-gpu"),
    ("requeue", "no-requeue"),
    ("exclusive", "oversubscribe"),
)


def _without_empty(options: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    kept: dict[str, str] = {}
    warnings: list[str] = []
    for name, value in options.items():
        if value == "" and KNOWN[f"--{name}"].takes == "value" and name != "comment":
            warnings.append(f"--{name} has no value and is ignored")
        else:
            kept[name] = value
    return kept, warnings
