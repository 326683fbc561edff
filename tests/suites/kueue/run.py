"""Kueue's specs, run package by package, and what came of each."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.suites.kueue.build import PACKAGES, programs
from tests.suites.kueue.cluster import served

_DATA = Path(__file__).with_name("out_of_scope.yaml")
_SECONDS = 3600


@dataclass(frozen=True)
class Spec:
    """One spec, and what came of it."""

    package: str
    name: str
    state: str  # passed, failed, out of scope, strict (passed with compat.strict)
    why: str = ""


def reasons(server: str, *, strict: bool = False) -> dict[str, dict[str, str]]:
    """Return why some specs are not run, by package and by a part of their names.

    With `strict`, those that are run with `compat.strict`, and why not without.
    """
    found: dict[str, dict[str, str]] = {}
    for entry in yaml.safe_load(_DATA.read_text()):
        if entry.get("server") in (None, server) and entry.get("strict", False) is strict:
            for spec in entry["specs"]:
                package, _, name = spec.partition(": ")
                found.setdefault(package, {})[name] = entry["reason"]
    return found


def run(
    names: Sequence[str], server: str, *, focus: str = "", keeps: Path | None = None
) -> Iterator[Spec]:
    """Build and run packages; yield what came of each spec."""
    for name in names:
        program = programs([name])[name]
        left_out = reasons(server).get(name, {})
        differs = reasons(server, strict=True).get(name, {})
        skipped = [f"-ginkgo.skip={re.escape(one)}" for one in (*left_out, *differs)]
        focused = [f"-ginkgo.focus={focus}"] if focus else []
        yield from _run(name, program, server, (*skipped, *focused), left_out, keeps)
        chosen = [one for one in differs if not focus or re.search(focus, one)]
        for one in _run_strict(name, program, server, chosen, keeps):
            is_as_said = one.state == "passed"
            why = next((why for part, why in differs.items() if part in one.name), one.why)
            yield dataclasses.replace(one, state="strict", why=why) if is_as_said else one


def _run_strict(
    name: str, program: Path, server: str, parts: Sequence[str], keeps: Path | None
) -> Iterator[Spec]:
    if parts:
        flags = [f"-ginkgo.focus={re.escape(one)}" for one in parts]
        yield from _run(name, program, server, flags, {}, keeps, strict=True)


def _run(
    name: str,
    program: Path,
    server: str,
    more: Sequence[str],
    left_out: dict[str, str],
    keeps: Path | None,
    *,
    strict: bool = False,
) -> Iterator[Spec]:
    with served(server, strict=strict) as address, tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        flags = [f"-ginkgo.json-report={report}", "-ginkgo.no-color", "-ginkgo.timeout=55m"]
        log = (keeps or Path(folder)) / f"{name}-{server}{'-strict' if strict else ''}.log"
        with log.open("wb") as out:
            subprocess.run(
                [str(program), "-test.timeout=0", *flags, *more],
                cwd=program.parent / "source" / PACKAGES[name],
                env={**os.environ, "UNISONO_SUITE": address},
                stdout=out,
                stderr=out,
                timeout=_SECONDS,
                check=False,
            )
        if not report.exists():
            yield Spec(name, "(the whole package)", "failed", log.read_text()[-2000:])
            return
        yield from read_report(name, json.loads(report.read_text()), left_out)


def read_report(package: str, reports: list[Any], left_out: dict[str, str]) -> Iterator[Spec]:
    for one in reports[0].get("SpecReports") or ():
        if one["LeafNodeType"] != "It":
            if one["State"] not in ("passed", "skipped"):
                yield Spec(package, one["LeafNodeType"], "failed", _failure(one))
            continue
        parts = [*(one.get("ContainerHierarchyTexts") or ()), one["LeafNodeText"]]
        full = " ".join(parts)
        reason = next((why for name, why in left_out.items() if name in full), "")
        if one["State"] == "skipped" and reason:
            yield Spec(package, full, "out of scope", reason)
        elif one["State"] == "passed":
            yield Spec(package, full, "passed")
        elif one["State"] not in ("skipped", "pending"):
            yield Spec(package, full, "failed", _failure(one))


def _failure(one: dict[str, Any]) -> str:
    failure = one.get("Failure") or {}
    where = failure.get("Location") or {}
    place = f"{Path(where.get('FileName', '?')).name}:{where.get('LineNumber', '?')}"
    message = str(failure.get("Message", one["State"]))
    return f"{place}: {message}"
