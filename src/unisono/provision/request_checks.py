"""Says whether admission checks that ask for nodes can be performed: AdmissionCheck `Active`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision.request_config import config_of, is_ours


class RequestChecks:
    """Keeps the condition of one check."""

    name = "provisioning-checks"
    watches: Sequence[Kind] = (names.ADMISSION_CHECK, names.REQUEST_CONFIG)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A check of ours, or all of them if a configuration changes."""
        if kind == names.ADMISSION_CHECK:
            if is_ours(obj):
                yield own_key(obj)
            return
        yield from (own_key(check) for check in view.all(names.ADMISSION_CHECK) if is_ours(check))

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write whether the check knows how to ask."""
        check = view.get(names.ADMISSION_CHECK, key.name)
        if check is None or not is_ours(check) or "deletionTimestamp" in check["metadata"]:
            return
        config = config_of(check, view)
        conditions = (check.get("status") or {}).get("conditions")
        old = find(conditions, "Active")
        if isinstance(config, str):
            made = with_condition(
                conditions, "Active", "False", "BadParametersRef", config, now=now
            )
        else:
            text = "The admission check is active"
            made = with_condition(conditions, "Active", "True", "Active", text, now=now)
        if old is None or find(made, "Active") != old:
            yield Patch(Ref.to(check), {"status": {"conditions": made}}, "status")
