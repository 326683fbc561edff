"""Kill -9 of a living cluster, again and again, while hundreds of gangs pass through it.

    python -m tests.durability.gangs --gangs 200
    python -m tests.durability.gangs --gangs 60 --pods process

`unisono up` is killed at random moments and started again on the same folder until every gang is
through. Then the log of its file has to show that each gang completed, that none ran in part for
longer than the roll-back time, and that no pod's work was done twice. With `--pods process` the
pods are real programs that say when they begin and end; their logs have to agree.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.durability.crashes import Server
from tests.durability.history import History
from tests.faults.jobs import JOB_KINDS, Gang, Wish
from tests.faults.sweep import surroundings
from unisono.kube.form import Json

# Kinds whose pods end by themselves and are made by an operator.
KINDS = ("job", "jobset", "trainjob", "vcjob", "pytorchjob")
# A gang may run in part while it binds (a minute), and while no controller is there to bind it.
ROLL_BACK_S = 60.0
_NODES = "8x{gpu=8,cpu=256,memory=1024Gi}"
_PATIENCE_S = 3600.0
_LONGEST_LIFE_S = 4.0
# No more are submitted between two kills, so that many gangs mean many kills.
_MOST_IN_A_LIFE = 8
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_COLLECTIONS = {
    "ResourceFlavor kueue.x-k8s.io/v1beta2": f"{_KUEUE}/resourceflavors",
    "ClusterQueue kueue.x-k8s.io/v1beta2": f"{_KUEUE}/clusterqueues",
    "LocalQueue kueue.x-k8s.io/v1beta2": f"{_KUEUE}/namespaces/default/localqueues",
    "Job batch/v1": "/apis/batch/v1/namespaces/default/jobs",
    "JobSet jobset.x-k8s.io/v1alpha2": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
    "TrainJob trainer.kubeflow.org/v1alpha1": (
        "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
    ),
    "Job batch.volcano.sh/v1alpha1": "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs",
    "PyTorchJob kubeflow.org/v1": "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs",
}


@dataclass(slots=True)
class Result:
    """What came of it."""

    gangs: int
    kills: int = 0
    changes: int = 0
    longest_part_s: float = 0.0
    longest_down_s: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """All of it in one line."""
        return (
            f"{self.gangs} gangs, {self.kills} kills, {self.changes} changes in the log; "
            f"longest in part {self.longest_part_s:.0f} s (down for at most "
            f"{self.longest_down_s:.1f} s); {len(self.faults)} faults"
        )


def wishes(count: int, random_source: random.Random) -> list[Gang]:
    """Draw gangs of all kinds that end by themselves."""
    found = []
    for number in range(count):
        sort = KINDS[number % len(KINDS)]
        wish = Wish(
            name=f"{sort}{number}",
            pods=random_source.randint(2, 4),
            gpus=random_source.choice((1, 2, 4)),
            seconds=random_source.choice((1, 2, 4)),
            queue="lq",
            priority="",
            fails_once=False,
        )
        found.append(JOB_KINDS[sort](wish))
    return found


def queue() -> list[Json]:
    """Return a flavor and a queue `lq` that is as large as the cluster."""
    made = [one for one in surroundings() if one["apiVersion"].startswith("kueue")]
    for one in made:
        for group in one["spec"].get("resourceGroups", ()) if "spec" in one else ():
            for resource in group["flavors"][0]["resources"]:
                resource["nominalQuota"] = "100000G"
    return [one for one in made if one["kind"] != "WorkloadPriorityClass"]


class Storm:
    """Submits gangs to a cluster that is killed all the time."""

    def __init__(self, folder: Path, gangs: Sequence[Gang], seed: int, pods: str) -> None:
        self._folder = folder
        self._gangs = gangs
        self._chance = random.Random(seed)
        self._options = ["--nodes", _NODES, "--pods", pods]
        self._left = [gang.objects[0] for gang in reversed(gangs)] + queue()[::-1]
        self._history = History(folder / "state.db")
        self._is_process = pods == "process"
        self.result = Result(len(gangs))

    def run(self) -> Result:
        """Kill and start until all gangs are through, and look at what happened."""
        end = time.monotonic() + _PATIENCE_S
        undone: list[str] = ["all"]
        while undone and time.monotonic() < end:
            undone = self._one_life()
            self._history.read_on()
            print(f"kill {self.result.kills}: {len(undone)} gangs are not through", flush=True)
            self._options = ["--pods", self._options[-1]]  # the nodes are there from now on
        self.result.faults += [f"{name} never ended well" for name in undone]
        self._judge()
        return self.result

    def _one_life(self) -> list[str]:
        """Run the cluster for a moment; return the gangs that are not done at its end."""
        began = time.monotonic()
        server = Server(self._folder, *self._options)
        down = time.monotonic() - began
        self.result.longest_down_s = max(self.result.longest_down_s, down)
        # On a busy machine everything takes longer, a life too.
        until = time.monotonic() + self._chance.uniform(0.05, max(_LONGEST_LIFE_S, 2 * down))
        undone = [gang.name for gang in self._gangs]
        try:
            with contextlib.closing(server.connect()) as connection:
                for _ in range(min(_MOST_IN_A_LIFE, len(self._left))):
                    if time.monotonic() < until:
                        self._submit(server, connection, self._left[-1])
                        self._left.pop()
                undone = self._undone(server, connection)
                while undone and time.monotonic() < until:
                    time.sleep(0.1)
                    undone = self._undone(server, connection)
        except (OSError, http.client.HTTPException) as error:
            self.result.faults.append(f"the API did not answer: {error}")
        finally:
            server.kill()
            self.result.kills += 1
        return undone

    def _submit(self, server: Server, connection: http.client.HTTPSConnection, obj: Json) -> None:
        code, answer = server.call(connection, "POST", _path(obj), self._told(obj))
        # It may not have been acknowledged before the last kill.
        if code not in (201, 409):
            name = obj["metadata"]["name"]
            self.result.faults.append(f"{name} was refused: {answer.get('message')}")

    def _told(self, obj: Json) -> Json:
        """Have the containers of real pods write down when they begin and end."""
        if self._is_process:
            line = "echo begin $HOSTNAME; sleep 1; echo end $HOSTNAME"
            _set_commands(obj, ["/bin/sh", "-c", line])
        return obj

    def _undone(self, server: Server, connection: http.client.HTTPSConnection) -> list[str]:
        ended = {}
        for path in _COLLECTIONS.values():
            if "kueue" in path:
                continue
            code, listing = server.call(connection, "GET", path)
            assert code == 200, listing
            for item in listing["items"]:
                ended[item["metadata"]["name"]] = item
        return [
            gang.name
            for gang in self._gangs
            if gang.name not in ended or gang.end(ended[gang.name]) != "succeeded"
        ]

    def _judge(self) -> None:
        result, history = self.result, self._history
        result.changes = history.changes
        result.faults += [f"ran twice: {one}" for one in history.overlaps()]
        wanted = {gang.name: gang.wish.pods for gang in self._gangs}
        result.longest_part_s, gang = history.longest_part(wanted)
        if result.longest_part_s > ROLL_BACK_S + result.longest_down_s:
            result.faults.append(f"{gang} ran in part for {result.longest_part_s:.0f} s")
        for life in history.lives.values():
            if life.restarts:
                result.faults.append(f"{life.name} was restarted")
        for name, count in wanted.items():
            ran = [lives for key, lives in history.gangs().items() if f"-{name}-" in key]
            if sum(map(len, ran)) != count:
                result.faults.append(f"{sum(map(len, ran))} pods of {name} ran, not {count}")
        if self._is_process:
            self._compare_logs()

    def _compare_logs(self) -> None:
        """Check what the programs themselves wrote, as far as their pods are still there."""
        logs = sorted((self._folder / "logs").glob("default/*/*.log"))
        for path in logs:
            words = [line.split()[1:] for line in path.read_text().splitlines()]
            if [word for word, *_ in words] != ["begin", "end"]:
                self.result.faults.append(f"{path.parent.name} wrote {words}")
        if len(logs) < len(self._gangs):
            self.result.faults.append(f"only {len(logs)} logs of {len(self._gangs)} gangs")


def _path(obj: Json) -> str:
    return _COLLECTIONS[f"{obj['kind']} {obj['apiVersion']}"]


def _set_commands(value: Any, command: list[str]) -> None:
    """Replace the command of every container in an object."""
    if isinstance(value, dict):
        for one in value.get("containers") or ():
            one["command"] = command
        if "numNodes" in value:  # of a TrainJob, which names its command above the pods
            value["command"] = command
        for below in value.values():
            _set_commands(below, command)
    elif isinstance(value, list):
        for below in value:
            _set_commands(below, command)


def run(gangs: int, seed: int, pods: str = "simulated") -> Result:
    """Run so many gangs through a cluster that is killed all the time."""
    with tempfile.TemporaryDirectory() as directory:
        drawn = wishes(gangs, random.Random(seed))
        return Storm(Path(directory) / "data", drawn, seed, pods).run()


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gangs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pods", choices=("simulated", "process"), default="simulated")
    arguments = parser.parse_args()
    result = run(arguments.gangs, arguments.seed, arguments.pods)
    for fault in result.faults:
        print(fault)
    print(result.line)
    return 1 if result.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
