"""A SchedulingPolicy in a file, and what labels say about whose a workload is."""

from __future__ import annotations

import pytest

from unisono.engine.model.multifactor import (
    Limits,
    MultifactorRules,
    Partition,
    SubmitOptions,
    UsageRecord,
)
from unisono.engine.model.names import Instant
from unisono.kinds.snapshot.build import World, read_world

NOW = Instant(1_767_268_800_000)
HEAD = "apiVersion: unisono.dev/v1alpha1\nkind: SchedulingPolicy\nspec:\n"
JOB = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: w
  namespace: ns
  labels: {LABELS}
  annotations: {ANNOTATIONS}
spec:
  queueName: q
  podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c}]}}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: q, namespace: ns}
spec: {clusterQueue: q}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec: {namespaceSelector: {}}
"""


def read(text: str) -> World:
    return read_world([("f", text.encode())], now=NOW)


def turns(body: str) -> MultifactorRules:
    world = read(HEAD + body)
    assert not world.problems, [one.line() for one in world.problems]
    assert world.snapshot.policy.multifactor is not None
    return world.snapshot.policy.multifactor


def turn(labels: str = "{}", annotations: str = "{}") -> tuple[SubmitOptions, list[str]]:
    world = read(JOB.replace("{LABELS}", labels).replace("{ANNOTATIONS}", annotations))
    (waiting,) = world.snapshot.waiting
    return waiting.submit_options, [one.path for one in world.problems]


def test_nothing_is_the_defaults() -> None:
    assert turns("  {}\n") == MultifactorRules()


def test_without_one_kueue_decides() -> None:
    assert (
        read(
            JOB.replace("{LABELS}", "{}").replace("{ANNOTATIONS}", "{}")
        ).snapshot.policy.multifactor
        is None
    )


def test_accounts_and_users() -> None:
    found = turns(
        "  accounts:\n"
        "    - name: lab\n"
        "      shares: parent\n"
        "      users: [{name: ann, shares: 3, priority: 7}]\n"
    )
    account, user = found.associations
    assert (account.account, account.user, account.shares) == ("lab", None, None)
    assert (user.account, user.user, user.shares, user.priority) == ("lab", "ann", 3, 7)


def test_limits_have_units() -> None:
    found = turns(
        "  qos: [{name: plain, limits: {tresPerUser: {cpu: 1500m, mem: 4Gi, nvidia.com/gpu: 8},\n"
        "         jobsPerUser: 0, wallPerJob: 1h30m, groupWall: 2h}}]\n"
    )
    assert found.qos[0].limits == Limits(
        tres_per_user=(("cpu", 1500), ("gres/gpu", 8000), ("mem", 4_096_000)),
        jobs_per_user=0,
        wall_per_job_ms=5_400_000,
        group_wall_ms=7_200_000,
    )


def test_a_partition_and_its_prices() -> None:
    found = turns(
        "  partitions: [{name: p, default: true, maxTime: 10m, prices: {mem: 0.25, gres/gpu: 4}}]\n"
    )
    assert found.partitions == (
        Partition(
            name="p",
            is_default=True,
            max_time_ms=600_000,
            billing_weights=(("gres/gpu", 4.0), ("mem", 0.25 / 1024)),
        ),
    )


def test_a_history() -> None:
    world = read(HEAD + "  accounts: [{name: a}]\n  used: [{owner: account/a, amount: 5}]\n")
    assert world.snapshot.usage == (UsageRecord(owner="account/a", amount=5.0, at=NOW),)


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ("  accounts: [{name: a, parent: b}]", "spec.accounts[0].parent", 'no account "b"'),
        ("  accounts: [{name: a}, {name: a}]", "spec.accounts[1].name", "stands twice"),
        (
            "  accounts: [{name: a, parent: b}, {name: b, parent: a}]",
            "spec.accounts[0].parent",
            "account a is below itself",
        ),
        ("  accounts: [{name: a, shares: much}]", "spec.accounts[0].shares", "a number or parent"),
        ("  accounts: [{name: a, shares: -1}]", "spec.accounts[0].shares", "cannot be negative"),
        ("  accounts: [{name: a, qos: [x]}]", "spec.accounts[0].qos[0]", 'no QOS "x"'),
        (
            "  accounts: [{name: a, users: [{name: u, defaultQos: x}]}]",
            "spec.accounts[0].users[0].defaultQos",
            'no QOS "x"',
        ),
        (
            "  qos: [{name: q, limits: {groupTres: {gpus: 4}}}]",
            "spec.qos[0].limits.groupTres[gpus]",
            "is no TRES",
        ),
        (
            "  qos: [{name: q, limits: {groupTres: {gres/gpu:a100: 4}}}]",
            "spec.qos[0].limits.groupTres[gres/gpu:a100]",
            "names a type of device",
        ),
        ("  partitions: [{name: p, qos: x}]", "spec.partitions[0].qos", 'no QOS "x"'),
        (
            "  partitions: [{name: p, allowAccounts: [x]}]",
            "spec.partitions[0].allowAccounts[0]",
            'no account "x"',
        ),
        ("  accountsOf: {ns: x}", "spec.accountsOf[ns]", 'no account "x"'),
        ("  used: [{owner: me, amount: 1}]", "spec.used[0].owner", "must be account/NAME"),
        ("  wieghts: {}", "spec.wieghts", "weights"),
        ("  maxAge: 0s", "spec.maxAge", "must be more"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(body: str, path: str, message: str) -> None:
    problems = read(f"{HEAD}{body}\n").problems
    assert [one.path for one in problems] == [path]
    assert message in problems[0].message


def test_two_are_one_too_many() -> None:
    problems = read(f"{HEAD}  {{}}\n---\n{HEAD}  {{}}\n").problems
    assert ["there is already a SchedulingPolicy" in one.message for one in problems] == [True]


def test_user_account_and_qos_of_a_workload() -> None:
    labels = "{unisono.dev/account: lab, unisono.dev/qos: high, unisono.dev/partition: p}"
    annotations = (
        '{unisono.dev/user: ann@example.com, unisono.dev/nice: "-5", unisono.dev/qos: low}'
    )
    assert turn(labels, annotations) == (
        SubmitOptions(account="lab", qos="low", partition="p", user="ann@example.com", nice=-5),
        [],
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{unisono.dev/hold: "true"}', SubmitOptions(hold="user")),
        ("{unisono.dev/hold: admin}", SubmitOptions(hold="admin")),
        ('{unisono.dev/priority: "0"}', SubmitOptions(priority=0)),
        ("{slurmjob.slinky.slurm.net/account: lab}", SubmitOptions(account="lab")),
        ('{slurmjob.slinky.slurm.net/user-id: "1000"}', SubmitOptions(user="1000")),
        ("{app: web}", SubmitOptions()),
    ],
)
def test_other_words(said: str, expected: SubmitOptions) -> None:
    assert turn(annotations=said) == (expected, [])


@pytest.mark.parametrize(
    "said", ["unisono.dev/nice: much", "unisono.dev/hold: maybe", 'unisono.dev/priority: "-1"']
)
def test_words_that_mean_nothing(said: str) -> None:
    key = said.partition(":")[0]
    assert turn(annotations=f"{{{said}}}")[1] == [f"metadata.annotations[{key}]"]
