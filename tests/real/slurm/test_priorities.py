"""Priorities and fair shares of the engine beside those of a real Slurm with the same accounts.

The configuration goes through `unisono slurm import`, the jobs through the bridge's own eyes
(`squeue --json`) and its gangs; the engine then has to find the integers that sprio prints.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.real.slurm.accounting import Account, accounted
from tests.real.slurm.daemons import Shape, Slurm
from tests.real.slurm.packages import NoSlurm
from unisono.cli.main import main
from unisono.engine.cluster import restore
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.ordering.fair_share import level_shares
from unisono.engine.ordering.priority_order import multifactor_of, priority_factors
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.snapshot.build import read_world
from unisono.kube.form import Json
from unisono.slurm.bridge.gang import Settings, gang_of
from unisono.slurm.bridge.slurm_view import SlurmJob, SlurmView, jobs_of, nodes_of

pytestmark = [pytest.mark.real, pytest.mark.slow]


ACCOUNTS = (
    Account("prod", shares=40),
    Account("research", shares=60),
    Account("nlp", "research", 10),
    Account("vision", "research", 30),
    Account("mail", "prod", is_user=True),
    Account("news", "prod", is_user=True),
    Account("lp", "nlp", is_user=True),
    Account("games", "vision", is_user=True),
    Account("man", "vision", 3, is_user=True),
)
QOS = {"low": 10, "normal": 50, "high": 100}
LINES = (
    "PriorityType=priority/multifactor",
    "PriorityDecayHalfLife=30:00",
    "PriorityCalcPeriod=1",
    "PriorityMaxAge=1:00:00",
    "PriorityWeightAge=1000",
    "PriorityWeightAssoc=100",
    "PriorityWeightFairshare=10000",
    "PriorityWeightJobSize=500",
    "PriorityWeightPartition=2000",
    "PriorityWeightQOS=3000",
    "PriorityWeightTRES=CPU=100,Mem=200,GRES/gpu=700",
)
PARTITIONS = (
    "PartitionName=main Nodes=ALL Default=YES MaxTime=7-0 State=UP PriorityJobFactor=10",
    "PartitionName=urgent Nodes=ALL MaxTime=7-0 State=UP PriorityJobFactor=40 PriorityTier=10",
)
# The jobs of the reference table: user, account, options.
JOBS = {
    "m1": ("man", "vision", "-N1", "-n4", "--gres=gpu:8"),
    "l1": ("lp", "nlp", "-N1", "-n16", "--gres=gpu:8", "--qos=low"),
    "a1": ("mail", "prod", "-N1", "-n1", "--gres=gpu:8"),
    "m2": ("man", "vision", "-N1", "-n4", "--gres=gpu:2", "--nice=50"),
    "pa": ("mail", "prod", "-N1", "-n2", "--gres=gpu:1", "--partition=urgent,main"),
    "n1": ("news", "prod", "-N3", "-n9", "--gres=gpu:2", "--qos=high", "--mem-per-cpu=3G"),
    "top": ("mail", "prod", "-N1", "--priority=10000"),
}


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """Run a Slurm with accounts, four nodes of 32 cores and 8 GPUs."""
    shape = Shape(nodes=4, partitions=PARTITIONS)
    try:
        with accounted(shape, ACCOUNTS, QOS, LINES) as found:
            yield found
    except NoSlurm as problem:
        pytest.skip(f"no real Slurm: {problem}")


def test_scenario_21_priorities_and_shares_are_those_of_a_real_slurm(
    slurm: Slurm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _use(slurm)
    submitted = {name: slurm.submit("-J", name, *_options(*job)) for name, job in JOBS.items()}
    slurm.until("they wait", submitted["m1"], "PENDING")
    sprio, seen_at = _next_priorities(slurm)
    documents = _imported(slurm, tmp_path, capsys)
    slurm_view = _slurm_view(slurm)
    shares = _shares(slurm)
    now = round(seen_at)
    # Slurm does not say to the second when it computed; the same second must explain every job.
    tried = {at: _priorities(documents, slurm_view, shares, at) for at in range(now - 4, now + 2)}
    assert sprio in tried.values(), f"sprio says {sprio}, we say {tried}"
    _same_shares(_state(documents, slurm_view, shares, now), shares)


def _use(slurm: Slurm) -> None:
    """Let three users have used the machine, and one keep all of it."""
    short = [
        slurm.submit("--uid=mail", "-Aprod", "-n8", script="sleep 4"),
        slurm.submit("--uid=news", "-Aprod", "-n16", script="sleep 4"),
        slurm.submit("--uid=man", "-Avision", "-n2", script="sleep 4"),
    ]
    for number in short:
        slurm.until("it", number, "COMPLETED")
    fills = slurm.submit("--uid=games", "-Avision", "-N4", "--exclusive")
    slurm.until("it", fills, "RUNNING")


def _options(user: str, account: str, *options: str) -> list[str]:
    return [f"--uid={user}", f"--account={account}", *options]


def _next_priorities(slurm: Slurm) -> tuple[dict[str, int], float]:
    """Wait until Slurm has worked its priorities out anew, and return them."""
    old = _sprio(slurm)
    deadline = time.monotonic() + 150
    while (new := _sprio(slurm)) == old or "m1/main" not in new:
        assert time.monotonic() < deadline, f"still {new}"
        time.sleep(0.3)
    return _sprio(slurm), time.time()


def _sprio(slurm: Slurm) -> dict[str, int]:
    """Return priorities by `name/partition`."""
    named = dict(
        line.split("|") for line in slurm("squeue", "-h", "-t", "PD", "-o", "%A|%j").splitlines()
    )
    rows = [line.split() for line in slurm("sprio", "-h", "-o", "%i %r %Y").splitlines()]
    return {f"{named[number]}/{partition}": int(value) for number, partition, value in rows}


def _slurm_view(slurm: Slurm) -> SlurmView:
    jobs = jobs_of(json.loads(slurm("squeue", "--json")))
    return SlurmView(jobs, nodes_of(json.loads(slurm("sinfo", "--json"))))


def _shares(slurm: Slurm) -> list[dict[str, str]]:
    """Return what sshare prints, a row per association."""
    head, *lines = slurm("sshare", "-a", "-l", "-P").splitlines()
    return [
        dict(zip(head.split("|"), (cell.strip() for cell in line.split("|")), strict=False))
        for line in lines
    ]


def _imported(slurm: Slurm, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[Json]:
    """Return the configuration as our documents."""
    slurm("sacctmgr", "-i", "dump", "test", f"file={folder / 'assoc'}")
    columns = "Name,Priority,GraceTime,Preempt,PreemptMode,Flags,UsageFactor"
    (folder / "qos").write_text(slurm("sacctmgr", "-P", "show", "qos", f"format={columns}"))
    capsys.readouterr()
    files = ("--assoc", str(folder / "assoc"), "--qos", str(folder / "qos"))
    assert main(["slurm", "import", str(slurm.conf), *files, "-n", "slurm", "-o", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    return [*made["documents"], *made["nodes"]]


def _state(
    documents: list[Json], slurm_view: SlurmView, shares: list[dict[str, str]], at: int
) -> ClusterState:
    """Return the engine's picture at a second: the same accounts, usage and jobs."""
    used = [{"owner": _owner(row), "amount": float(row["RawUsage"])} for row in shares]
    made: list[Json] = []
    for one in documents:
        if one["kind"] == "SchedulingPolicy":
            one = {**one, "spec": {**one["spec"], "compat": "slurm", "used": used}}
        made.append(one)
    for job in slurm_view.jobs.values():
        if job.state == "PENDING":
            made += _gangs(job, slurm_view)
    listed = {"apiVersion": "v1", "kind": "List", "items": made}
    world = read_world([("all", json.dumps(listed).encode())], now=Instant(at * 1000))
    assert not world.problems, world.problems
    state = restore(world.snapshot)
    state.refresh()
    return state


def _gangs(job: SlurmJob, slurm_view: SlurmView) -> Iterator[Json]:
    """Yield a job as the gang that the bridge makes of it, one for each of its partitions."""
    comment = "unisono:gate priority=10000" if job.name == "top" else ""
    user = "root" if job.name == "top" else job.user  # who set it, not whose it is
    since = datetime.fromtimestamp(job.submitted, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for partition in job.partition.split(","):
        one = msgspec.structs.replace(
            job, key=f"{job.name}-{partition}", comment=comment, user=user, partition=partition
        )
        made = gang_of(one, slurm_view.nodes, Settings(cluster="c"), queue=partition)
        made["metadata"]["creationTimestamp"] = since
        if job.name == "top":
            made["metadata"]["annotations"]["unisono.dev/account"] = "root"
        yield made


def _priorities(
    documents: list[Json], slurm_view: SlurmView, shares: list[dict[str, str]], at: int
) -> dict[str, int]:
    state = _state(documents, slurm_view, shares, at)
    found = {}
    for job in slurm_view.jobs.values():
        for partition in job.partition.split(",") if job.state == "PENDING" else ():
            key = WorkloadKey(f"slurm/job-slurm-c-{job.name}-{partition}")
            factors = priority_factors(state, key)
            assert factors is not None, key
            found[f"{job.name}/{partition}"] = factors.priority
    return found


def _same_shares(state: ClusterState, shares: list[dict[str, str]]) -> None:
    """Compare fair shares, which are ranks, to the last digit; levels as far as usage is told."""
    multifactor = multifactor_of(state)
    assert multifactor is not None
    fair = multifactor.fair_shares()
    level = level_shares(multifactor.accounts, multifactor.usage.billing(multifactor.now))
    ours = {multifactor.accounts.owner(n): n for n in range(len(multifactor.accounts.specs))}
    for row in shares:
        owner = _owner(row)
        if row["FairShare"]:
            assert round(float(fair[ours[owner]]), 6) == float(row["FairShare"]), owner
        if row.get("LevelFS"):
            # Usage is printed without its fraction, of which little usage is a large part.
            slack = 0.002 + 1.0 / max(1.0, float(row["RawUsage"]))
            wanted = pytest.approx(float(row["LevelFS"]), rel=slack)
            assert float(level[ours[owner]]) == wanted, owner


def _owner(row: dict[str, str]) -> str:
    return f"user/{row['Account']}/{row['User']}" if row["User"] else f"account/{row['Account']}"
