"""A SchedulingPolicy as the engine reads it, and what a workload's labels say about its turn.

To order workloads by account, make a `SchedulingPolicy` first (a document, or an import of
`slurm.conf`), so that there is one place where such a policy is checked and one that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.engine.model import multifactor as engine
from unisono.engine.model.names import Instant
from unisono.engine.ordering.tres import milli, tres_name
from unisono.kinds.core.selection import labels_of
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.policy.scheduling import (
    Account,
    Limits,
    Partition,
    Qos,
    SchedulingPolicy,
    User,
)
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Duration

PREFIX = "unisono.dev/"
# SchedMD's slurm-bridge has annotations for the same things; manifests written for it work here.
BRIDGE_PREFIX = "slurmjob.slinky.slurm.net/"
WORDS = ("account", "user", "qos", "partition", "nice", "priority", "hold", "number", "task")
_BRIDGE_WORDS = {"user": "user-id"}
_WHOLE = re.compile(r"[+-]?[0-9]{1,10}")
_MOST_NICE = 2_147_483_645
_MOST_NUMBER = 2**32 - 1
_MIB_A_GIB = 1024


def multifactor_rules_of(document: SchedulingPolicy) -> engine.MultifactorRules:
    """Return the engine's form of a policy."""
    spec, default = document.spec, engine.MultifactorRules()
    return engine.MultifactorRules(
        order=spec.order,
        weights=engine.Weights(
            age=spec.weights.age,
            association=spec.weights.association,
            fair_share=spec.weights.fair_share,
            job_size=spec.weights.job_size,
            partition=spec.weights.partition,
            qos=spec.weights.qos,
            tres=_numbers(spec.weights.tres),
            priority_class=spec.weights.priority_class,
        ),
        max_age_ms=_ms(spec.max_age, default.max_age_ms),
        age_from_submission=spec.age_from_submission,
        half_life_ms=_ms(spec.half_life, default.half_life_ms),
        reset=spec.reset,
        fair_share=spec.fair_share,
        dampening=spec.dampening,
        favor_small=spec.favor_small,
        small_relative_to_time=spec.small_relative_to_time,
        billing=spec.billing,
        raw=spec.raw,
        compat=spec.compat == "slurm",
        calc_period_ms=_ms(spec.calc_period, default.calc_period_ms),
        associations=tuple(one for account in spec.accounts for one in _associations(account)),
        qos=tuple(_qos(one) for one in spec.qos),
        partitions=tuple(_partition(one) for one in spec.partitions),
        accounts_of=tuple(sorted(spec.accounts_of.items())),
        default_account=spec.default_account,
        default_qos=spec.default_qos,
        known_users_only=spec.known_users_only,
        operators=spec.operators,
        totals=_amounts(spec.totals),
    )


def usage_of(document: SchedulingPolicy, now: Instant) -> tuple[engine.UsageRecord, ...]:
    """Return the history that a policy starts with."""
    return tuple(
        engine.UsageRecord(
            owner=one.owner,
            what=one.what,
            amount=one.amount,
            at=one.at.instant if one.at is not None else now,
        )
        for one in document.spec.used
    )


def _associations(account: Account) -> list[engine.Association]:
    return [
        engine.Association(
            account=account.name,
            parent=account.parent,
            shares=_shares(account),
            priority=account.priority,
            qos=account.qos,
            default_qos=account.default_qos,
            limits=_limits(account.limits),
        ),
        *(
            engine.Association(
                account=account.name,
                user=user.name,
                is_default=user.is_default,
                shares=_shares(user),
                priority=user.priority,
                qos=user.qos,
                default_qos=user.default_qos,
                limits=_limits(user.limits),
            )
            for user in account.users
        ),
    ]


def _shares(one: Account | User) -> int | None:
    return one.shares if isinstance(one.shares, int) else None


def _qos(one: Qos) -> engine.Qos:
    return engine.Qos(
        name=one.name,
        priority=one.priority,
        usage_factor=one.usage_factor,
        deny_on_limit=one.deny_on_limit,
        no_decay=one.no_decay,
        over_partition=one.over_partition,
        ignores_partition_time=one.ignores_partition_time,
        ignores_partition_nodes=one.ignores_partition_nodes,
        limits=_limits(one.limits),
    )


def _partition(one: Partition) -> engine.Partition:
    prices = {tres_name(name): price for name, price in one.prices.items()}
    if "mem" in prices:
        prices["mem"] /= _MIB_A_GIB
    return engine.Partition(
        name=one.name,
        is_default=one.is_default,
        state=one.state,
        tier=one.tier,
        job_factor=one.job_factor,
        qos=one.qos,
        max_time_ms=one.max_time.ms if one.max_time is not None else None,
        min_nodes=one.min_nodes,
        max_nodes=one.max_nodes,
        allow_accounts=one.allow_accounts,
        deny_accounts=one.deny_accounts,
        allow_qos=one.allow_qos,
        deny_qos=one.deny_qos,
        limits=_limits(one.limits),
        billing_weights=tuple(sorted(prices.items())),
        node_labels=labels_of(one.node_labels),
    )


def _limits(one: Limits) -> engine.Limits:
    """Translate limits field by field: durations become milliseconds, quantities thousandths."""
    found: dict[str, object] = {}
    for name in one.__struct_fields__:
        value = getattr(one, name)
        if isinstance(value, Duration):
            found[f"{name}_ms"] = value.ms
        elif isinstance(value, Mapping):
            found[name] = _amounts(value)
        elif value is not None:
            found[name] = value
    return engine.Limits(**found) if found else engine.NO_LIMITS  # type: ignore[arg-type]  # same names


def _amounts(written: Mapping[str, Quantity]) -> engine.TresAmounts:
    """Return amounts of TRES; memory is written in bytes (64Gi), everything else in its unit."""
    found: dict[str, int] = {}
    for name, amount in written.items():
        known = tres_name(name)
        is_memory = known == "mem"
        found[known] = milli("memory", amount.units) if is_memory else amount.milli
    return tuple(sorted(found.items()))


def _numbers(written: Mapping[str, float]) -> engine.TresWeights:
    return tuple((tres_name(name), float(weight)) for name, weight in written.items())


def _ms(written: Duration | None, default: int) -> int:
    return default if written is None else written.ms


# ---- workloads ---------------------------------------------------------------------------------

_UNSAID = engine.SubmitOptions()


def submit_options_of(metadata: ObjectMeta, notes: Notes) -> engine.SubmitOptions:
    """Read what an object says about its turn: annotations, else labels."""
    if not metadata.annotations and not metadata.labels:
        return _UNSAID
    given = {word: found for word in WORDS if (found := _said(metadata, word)) is not None}
    if not given:
        return _UNSAID
    priority = _whole(given, "priority", 0, 2**32 - 1, notes)
    hold = given.get("hold", ("", ""))[1]
    if hold not in ("", "user", "admin", "true", "false"):
        notes.problem(given["hold"][0], f'"{hold}" must be user or admin')
    return engine.SubmitOptions(
        account=given.get("account", ("", ""))[1],
        user=given.get("user", ("", ""))[1],
        qos=given.get("qos", ("", ""))[1],
        partition=given.get("partition", ("", ""))[1],
        nice=_whole(given, "nice", -_MOST_NICE, _MOST_NICE, notes) or 0,
        priority=priority,
        number=_whole(given, "number", 0, _MOST_NUMBER, notes) or 0,
        task=_whole(given, "task", 0, _MOST_NUMBER, notes) or 0,
        hold="admin" if hold == "admin" else "user" if hold in ("user", "true") else "",
    )


def job_number(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of a job and of its array task, which order jobs of one second; 0: none."""
    if not labels and not annotations:
        return 0, 0
    given = ObjectMeta(labels=labels, annotations=annotations)
    number, task = _said(given, "number"), _said(given, "task")
    return (
        _within(number[1], 0, _MOST_NUMBER) or 0 if number is not None else 0,
        _within(task[1], 0, _MOST_NUMBER) or 0 if task is not None else 0,
    )


def multifactor_texts(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what is said about a turn as annotations, for the Workload of a job.

    >>> multifactor_texts({"unisono.dev/qos": "high", "app": "x"}, {"unisono.dev/nice": "5"})
    {'unisono.dev/qos': 'high', 'unisono.dev/nice': '5'}
    """
    given = ObjectMeta(labels=labels, annotations=annotations)
    found = {word: _said(given, word) for word in WORDS}
    return {PREFIX + word: one[1] for word, one in found.items() if one is not None}


def _said(metadata: ObjectMeta, word: str) -> tuple[str, str] | None:
    """Return where something is said, and what."""
    for part, values in (("annotations", metadata.annotations), ("labels", metadata.labels)):
        for key in (PREFIX + word, BRIDGE_PREFIX + _BRIDGE_WORDS.get(word, word)):
            if key in values:
                return f"metadata.{part}[{key}]", values[key]
    return None


def _whole(
    given: Mapping[str, tuple[str, str]], word: str, least: int, most: int, notes: Notes
) -> int | None:
    if word not in given:
        return None
    path, text = given[word]
    number = _within(text, least, most)
    if number is None:
        notes.problem(path, f'"{text}" must be a whole number from {least} to {most}')
    return number


def _within(text: str, least: int, most: int) -> int | None:
    if _WHOLE.fullmatch(text) is None or not least <= int(text) <= most:
        return None
    return int(text)
