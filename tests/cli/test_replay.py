"""Recordings as files, and `unisono replay`."""

from __future__ import annotations

import asyncio
import json
import random
import stat
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.plan.test_plan import CLUSTER, batch_job
from tests.control.scheduler.test_start_times import limited
from tests.engine.test_flight import POLICIES, Life
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.cli.main import main
from unisono.control.assembly import Assembly, embedded
from unisono.control.view import View
from unisono.engine.flight import Tape, encoded, first_difference, replay
from unisono.engine.model.policy import Policy
from unisono.kinds.policy.settings import Settings
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation
from unisono.runtime import recording
from unisono.runtime.recording import Folder, lines_of, recorder, recordings

Captured = pytest.CaptureFixture[str]


def test_a_simulation_is_recorded_and_made_again(tmp_path: Path, capsys: Captured) -> None:
    where = ["--trace", "gpu:jobs=120,gpus=64", "--nodes", "8x{gpu=8,cpu=96,memory=768Gi}"]
    policies = "fifo,kueue-fair,easy,easy-sjbf,conservative"
    assert main(["sim", *where, "--policy", policies, "--record", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["replay", str(tmp_path)]) == 2
    assert "; choose one of conservative-0, easy-0" in capsys.readouterr().err
    folders = sorted(tmp_path.iterdir())
    assert [folder.name for folder in folders] == sorted(f"{p}-0" for p in policies.split(","))
    for folder in folders:
        assert main(["replay", str(folder)]) == 0
        assert "the same again, byte for byte" in capsys.readouterr().out


def test_decide_is_recorded_and_told(tmp_path: Path, capsys: Captured) -> None:
    manifests = tmp_path / "all.yaml"
    manifests.write_text(CLUSTER + batch_job("a", 3, "1:00:00") + batch_job("b", 4))
    folder = tmp_path / "flights"
    arguments = ["-f", str(manifests), "--until-stable", "--now", "2026-01-01T12:00:00Z"]
    assert main(["decide", *arguments, "--record", str(folder)]) == 0
    capsys.readouterr()
    assert main(["replay", str(folder), "--at", "1"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "Decision 1: At 2026-01-01T12:00:00Z 2 workloads pending and 0 admitted, on 1 node." in (
        words
    )
    assert "default/job-a (priority 0, waiting for 0s) starts in queue q: 1 of main on n1" in words
    assert main(["replay", str(folder), "--at", "9"]) == 2
    assert "has decisions 1 to " in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "nothing")]) == 2
    capsys.readouterr()


def test_a_difference_is_shown_with_both_sides(tmp_path: Path, capsys: Captured) -> None:
    life = Life(POLICIES["kueue"], 7, most=1 << 30)
    for _ in range(20):
        life.step()
    lines = life.reel.recordings[0]
    entry = json.loads(lines[3])
    entry["plan"]["examined"] = ["elsewhere"]
    lines[3] = json.dumps(entry).encode()
    folder = Folder(tmp_path)
    folder.begin(lines[0])
    for line in lines[1:]:
        folder.add(line)
    folder.close()
    assert main(["replay", str(tmp_path)]) == 1
    words = capsys.readouterr().out
    assert "decision 3 came out otherwise" in words
    assert "  recorded  elsewhere" in words
    assert main(["replay", str(tmp_path), "-o", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["identical"] is False
    assert answer["difference"]["decision"] == 3


def test_a_recording_that_lacks_a_line_is_damaged(tmp_path: Path, capsys: Captured) -> None:
    life = Life(POLICIES["easy"], 7, most=1 << 30)
    for _ in range(20):
        life.step()
    lines = life.reel.recordings[0]
    folder = Folder(tmp_path)
    folder.begin(lines[0])
    for line in (*lines[1:3], *lines[5:]):
        folder.add(line)
    folder.close()
    assert main(["replay", str(tmp_path)]) == 3
    assert "decision 3 is missing; decision 5 follows" in capsys.readouterr().err


def test_recordings_are_private_bounded_and_survive_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_LEAST_BYTES", 3000)
    life = Life(POLICIES["conservative"], 1)
    life.tape = Tape(Folder(tmp_path / "f", most_bytes=60_000))
    for _ in range(150):
        life.step()
    found = recordings(tmp_path / "f")
    assert len(found) > 1
    assert found[0].stem != "000001", "the oldest ones are gone"
    assert sum(path.stat().st_size for path in found[:-1]) < 60_000
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o700
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert all(again.is_identical for again, _ in replay(lines_of(path)))
    whole = list(lines_of(found[0]))
    content = found[0].read_bytes()
    for cut in (1, 20, len(content) // 2):
        found[0].write_bytes(content[:-cut])
        kept = list(lines_of(found[0]))
        assert kept == whole[: len(kept)]
        assert all(again.is_identical for again, _ in replay(kept))
    (tmp_path / "junk").write_bytes(zlib.compress(b"junk"))
    assert main(["replay", str(tmp_path / "junk")]) == 3


def test_a_full_disk_does_not_stop_decisions(tmp_path: Path, capsys: Captured) -> None:
    folder = Folder(tmp_path / "f")
    life = Life(POLICIES["kueue"], 1)
    life.tape = Tape(folder)
    life.step()
    (tmp_path / "f").rename(tmp_path / "gone")
    folder.begin(b"{}")
    for _ in range(5):
        life.step()
    assert "decisions are not recorded any more" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["kueue", "easy", "conservative"])
def test_what_a_living_cluster_decided_is_made_again(name: str, tmp_path: Path) -> None:
    policy: Policy = POLICIES[name]

    def assemble(view: View, settings: Settings) -> Assembly:
        made = embedded(view, settings, decides=recorder(tmp_path).plan)
        kubelet = SimulatedKubelet(Simulation())
        return Assembly(made.scheduler, (*made.controllers, kubelet))

    async def story() -> None:
        dice = random.Random(name)
        async with World(assemble=assemble, settings=Settings(policy=policy)).running() as world:
            preempts = {"withinClusterQueue": "LowerPriority"}
            await world.create(node("n1"), node("n2"), *queue(preemption=preempts))
            await world.create(priority("high", 10))
            for place in range(12):
                more: Any = {"priority_class": "high"} if dice.random() < 0.3 else {}
                size, runs = dice.choice([2, 4, 8]), dice.randrange(20, 200)
                if dice.random() < 0.3:
                    await world.create(job(f"j{place}", pods=2, gpus=size, seconds=runs, **more))
                else:
                    await world.create(limited(f"j{place}", size, runs, runs + 20, **more))
                await world.pass_time(dice.randrange(0, 60))
                if place == 6:
                    world.restart()  # a new process begins a recording of its own
            await world.pass_time(600)

    asyncio.run(story())
    found = recordings(tmp_path)
    assert len(found) == 2
    decisions = 0
    for path in found:
        for again, _ in replay(lines_of(path)):
            difference = first_difference(again.recorded, encoded(again.made))
            assert again.is_identical, f"decision {again.number}: {difference}"
            decisions += 1
    assert decisions > 12
