"""The runner itself: it must notice what a story gets wrong, and say where a file is wrong."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import msgspec
import pytest

from tests.scenarios import runner
from tests.scenarios.outcomes import Mismatch
from tests.scenarios.reading import BadScenario
from tests.scenarios.runner import run
from unisono.engine.cycle import plan
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.state.cluster import ClusterState

HEAD = "story: A story.\nspec: quota.md, scenario 1\ncluster: {queues: {q: {quota: 4}}}\nsteps:\n"


def tell(tmp_path: Path, steps: str, head: str = HEAD) -> None:
    """Run a story with these steps."""
    path = tmp_path / "story.yaml"
    path.write_text(head + steps)
    run(path)


SUBMIT = "  - submit: {w: {queue: q, gpu: 3}, v: {queue: q, gpu: 2}}\n"
RUNNING = "  - running: {r: {queue: q, gpu: 3, prio: -1}}\n"
PREEMPTING = HEAD.replace("quota: 4", "quota: 4, within: LowerPriority")


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("  - cycle: nothing\n", "steps[1].cycle: expected no decision"),
        ("  - cycle: idle\n", "steps[1].cycle: expected nothing to look at"),
        (
            "  - cycle: {v: admitted}\n",
            "cycle.v: expected an admission, but default/v is",
        ),
        ("  - cycle: {w: waits}\n", "expected to wait, but default/w was admitted"),
        ("  - cycle: {v: waits}\n", "expected to wait, but default/v is not in the plan"),
        ("  - cycle: {w: {admitted: {flavor: h100}}}\n", "expected ['h100'], got ['f']"),
        ("  - cycle: {w: {admitted: {flavors: {cpu: f}}}}\n", "nvidia.com/gpu"),
        ("  - cycle: {w: {admitted: {pods: 2}}}\n", "pods: expected 2, got 1"),
        ("  - cycle: {w: {admitted: {pods: {main: 2}}}}\n", "expected {'main': 2}"),
        ("  - cycle: {w: {admitted: {level: 1}}}\n", "level: expected 1, got 0"),
        ("  - cycle: {w: {admitted: {checks: pending}}}\n", "expected pending, got passed"),
        ("  - cycle: {w: {evicts: {v: InClusterQueue}}}\n", "expected a preemption"),
        ("  - cycle: {w: {stopped: PodsReadyTimeout}}\n", "expected to be stopped"),
        ("  - positions: {w: 1}\n", "expected place 1, got 0"),
        ("  - local_positions: {v: 0}\n", "expected place 0, got 1"),
        ("  - now: {waits: [w]}\n", "expected ['default/w']"),
        ("  - now: {runs: [w]}\n", "expected ['default/w'], got []"),
        ("  - numbers: {q: {available: 3}}\n", "available: expected 3, got 4"),
        ("  - stable: {runs: [v]}\n", "runs: expected ['default/v'], got ['default/w']"),
        ("  - stable: {evictions: 1}\n", "expected 1 evictions, got {}"),
        ("  - priorities: {w: 7}\n", "expected 7, got 0"),
        ("  - why: {w: ExceedsMaxQuota}\n", "expected ExceedsMaxQuota, got PendingEvaluation"),
        ("  - leave: w\n", "default/w holds no quota"),
    ],
)
def test_a_wrong_story_fails(tmp_path: Path, steps: str, problem: str) -> None:
    with pytest.raises(Mismatch, match=re.escape(problem)):
        tell(tmp_path, SUBMIT + steps)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("  - cycle: {w: {evicts: {r: InCohortReclamation}}}\n", "got InClusterQueue"),
        ("  - cycle: {w: {evicts: {r: InClusterQueue}, to_run: {pods: 2}}}\n", "expected 2, got 1"),
        ("  - cycle: {w: {evicts: {r: {already_evicting: true}}}}\n", "expected True, got False"),
        ("  - cycle: {w: {waits: WaitingForQuota}}\n", "got WaitingForPreemptedWorkloads"),
        ("  - cycle: {w: waits}\n", "does not mention that default/r was evicted"),
        ("  - cycle: {}\n", "does not mention that default/r was evicted"),
        ("  - stable: {evictions: {r: 2}}\n", "expected evictions {'default/r': 2}"),
    ],
)
def test_a_wrong_victim_fails(tmp_path: Path, steps: str, problem: str) -> None:
    with pytest.raises(Mismatch, match=re.escape(problem)):
        tell(tmp_path, RUNNING + SUBMIT + steps, head=PREEMPTING)


NODES = """\
story: A story.
spec: placement.md, scenario 1
cluster:
  queues: {q: 8}
  levels: [rack]
  every_node: {rack: r1}
  nodes: {n1: 2, n2: 1}
  pods: {other: {node: n2, gpu: 1}}
steps:
  - submit: {g: {queue: q, pods: 2, gpu: 1}, h: {queue: q, pods: 3, gpu: 1}}
"""


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("  - cycle: {g: {admitted: {nodes: {n1: 1, n2: 1}}}}\n", "got {'n1': 2}"),
        (
            "  - gone: other\n  - delete: g\n  - cycle: {h: {admitted: {nodes: {n2: 1, n1: 2}}}}\n",
            "expected the order ['n2', 'n1'], got ['n1', 'n2']",
        ),
        (
            "  - delete: g\n  - cycle: {h: {waits: {says: no GPUs}}}\n",
            "expected 'no GPUs' in 'pod set main: 2 of 3 pods fit",
        ),
        (
            "  - delete: g\n"
            "  - cycle: {h: {waits: [{fact: GangDoesNotFit, refusals: {gpu: 2}}]}}\n",
            "'refusals': {'nvidia.com/gpu': 2}}, got",
        ),
        (
            "  - delete: g\n  - cycle: {h: {waits: [{fact: GangDoesNotFit, level: rack}]}}\n",
            "'level': 'cloud.provider.com/topology-rack'}, got",
        ),
    ],
)
def test_a_wrong_place_fails(tmp_path: Path, steps: str, problem: str) -> None:
    with pytest.raises(Mismatch, match=re.escape(problem)):
        tell(tmp_path, steps, head=NODES)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("  - lose: n3\n", "there is no node n3"),
        ("  - gone: n1\n", "there is no pod n1"),
        ("  - join: {n3: {gpus: 8}}\n", "n3.gpus: unknown field"),
        ("  - join: {n3: {taints: [a]}}\n", "must look like key=value:NoSchedule"),
        ("  - set: {levels: [row]}\n", "no level is called row; there are zone, block, rack"),
        ("  - submit: {w: {queue: q, topology: {required: row}}}\n", "no level is called row"),
        (
            "  - submit: {w: {queue: q, topology: {required: rack, preferred: rack}}}\n",
            "either a required or a preferred level",
        ),
        ("  - submit: {w: {queue: q, topology: anywhere}}\n", "must be one of unconstrained"),
        ("  - submit: {w: {queue: q, affinity: [disk]}}\n", "must look like `key In a,b`"),
        ("  - submit: {w: {queue: q, tolerates: [':x']}}\n", "must look like key, key=value"),
    ],
)
def test_a_mistake_about_nodes_is_named(tmp_path: Path, steps: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=re.escape(problem)):
        tell(tmp_path, steps, head=NODES)


def test_a_plan_is_made_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = itertools.count()

    def moody(state: ClusterState, now: Instant) -> Plan:
        return msgspec.structs.replace(plan(state, now), based_on=next(made))

    monkeypatch.setattr(runner, "plan", moody)
    with pytest.raises(Mismatch, match="the same picture gives two plans"):
        tell(tmp_path, "  - cycle: {g: admitted}\n", head=NODES)


def test_a_plan_leaves_no_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(state: ClusterState, now: Instant) -> Plan:
        made = plan(state, now)
        state.nodes.table.free[0, 0] -= 1
        return made

    monkeypatch.setattr(runner, "plan", careless)
    with pytest.raises(Mismatch, match="the plan left its traces on the nodes"):
        tell(tmp_path, "  - cycle: {g: admitted}\n", head=NODES)


def test_a_story_may_be_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = NODES.replace("cluster:", "twice: true\ncluster:")
    tell(tmp_path, "  - cycle: {g: admitted}\n", head=head)
    plans = iter([[b"one plan"], [b"another"]])
    monkeypatch.setattr(runner, "_tell", lambda given: next(plans))
    with pytest.raises(Mismatch, match="told again, the story has other plans"):
        tell(tmp_path, "  - cycle: {g: admitted}\n", head=head)


def test_admissions_come_in_the_order_told(tmp_path: Path) -> None:
    head = HEAD.replace("{q: {quota: 4}}", "{a: 4, b: 4}")
    submit = "  - submit: {w: {queue: a, gpu: 1}, v: {queue: b, gpu: 1}}\n"
    tell(tmp_path, submit + "  - cycle: {w: admitted, v: admitted}\n", head=head)
    with pytest.raises(Mismatch, match="in another order: default/w, default/v"):
        tell(tmp_path, submit + "  - cycle: {v: admitted, w: admitted}\n", head=head)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ("  - submitted: {}\n", "steps[0].submitted: unknown field; known are running, submit"),
        ("  - {submit: {}, cycle: {}}\n", "steps[0]: is one step, with one verb, not 2"),
        ("  - submit: {w: {queue: q, gpus: 3}}\n", "steps[0].submit.w.gpus: unknown field"),
        ("  - submit: {w: {gpu: 3}}\n", "names either a queue or a local queue"),
        ("  - submit: {w: {queue: q, gpu: x}}\n", '"x" is not a quantity'),
        ("  - submit: {w: {queue: q, prio: high}}\n", "must be a whole number, not 'high'"),
        ("  - running: {w: {queue: p, gpu: 3}}\n", "there is no queue p"),
        ("  - running: {w: {queue: q, cpu: 3}}\n", "queue q has no quota for cpu"),
        ("  - running: {w: {queue: q, gpu: 3, flavor: h}}\n", "of flavor h"),
        ("  - set: {queues: {q: {quota: 4-2}}}\n", "not a quantity"),
        ("  - set: {queues: {q: {within: lower}}}\n", "must be one of Never, LowerPriority"),
        ("  - set: {queues: {q: {strict: 1}}}\n", "must be true or false, not 1"),
        ("  - cycle: {w: started}\n", "must be one of admitted, waits"),
        ("  - cycle: {w: {admited: {}}}\n", "unknown field; known are admitted, buys"),
        ("  - numbers: {p: {usage: 3}}\n", "there is no queue and no cohort p"),
        ("  - time: soon\n", "must be seconds, or a time like 90s"),
        ("  - finish: w\n", "there is no workload default/w"),
        ("  - submit: {w: {queue: q}, w: {queue: q}}\n", "line 5: w stands twice"),
        ("  - submit: [\n", "is not YAML"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, steps: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=re.escape(problem)):
        tell(tmp_path, steps)


def test_a_file_says_what_it_tells(tmp_path: Path) -> None:
    with pytest.raises(BadScenario, match="has no story"):
        tell(tmp_path, "  - cycle: idle\n", head=HEAD.partition("\n")[2])
