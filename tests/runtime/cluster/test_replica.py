"""Rights that are taken away are told by verb and resource, and not at every try."""

from __future__ import annotations

import io
import json

from unisono.kube.errors import Conflict, Forbidden, Status
from unisono.runtime.cluster.replica import Denials
from unisono.runtime.log import Journal


def _no(verb: str, name: str) -> Forbidden:
    message = (
        f'workloads.kueue.x-k8s.io "{name}" is forbidden: User "system:serviceaccount:a:b" cannot '
        f'{verb} resource "workloads/status" in API group "kueue.x-k8s.io" in the namespace "n"'
    )
    return Forbidden(Status(code=403, reason="Forbidden", message=message))


def test_each_right_is_told_once_in_a_while() -> None:
    out, now = io.StringIO(), 0.0
    denials = Denials(Journal(out, lambda: 0.0), lambda: now)
    denials.hear(None)
    denials.hear(Conflict(Status(code=409)))
    for name in ("a", "b"):
        denials.hear(_no("patch", name))
    denials.hear(_no("update", "a"))
    now = 301.0
    denials.hear(_no("patch", "c"))
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(one["event"], one["verb"], one["resource"]) for one in told] == [
        ("not allowed", verb, "workloads/status.kueue.x-k8s.io")
        for verb in ("patch", "update", "patch")
    ]
    assert {one["level"] for one in told} == {"error"}


def test_a_refusal_for_another_reason_is_told_as_it_is() -> None:
    out = io.StringIO()
    refused = Forbidden(Status(code=403, message='pods "x" is forbidden: exceeded quota: q'))
    Denials(Journal(out, lambda: 0.0), lambda: 0.0).hear(refused)
    assert json.loads(out.getvalue())["reason"] == 'pods "x" is forbidden: exceeded quota: q'
