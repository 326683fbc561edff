"""The list that `make scenarios` prints, and what it makes of files that do not belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.__main__ import main, report
from tests.scenarios.reading import BadScenario
from tests.scenarios.stories import Numbers, number_of

STORY = """\
story: A job of {size} GPUs in a queue of four.
spec: quota.md, scenario {number}
cluster: {{queues: {{q: 4}}}}
steps:
  - submit: {{w: {{queue: q, gpu: {size}}}}}
  - cycle: {{w: admitted}}
"""


def write(directory: Path, number: int, size: int) -> Path:
    """Write a story in which a job of that size is admitted to four GPUs, or so it says."""
    path = directory / "quota" / f"{number:03}-a-job.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(STORY.format(number=number, size=size))
    return path


def test_each_number_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = Numbers(
        known=range(1, 5),
        stories={1: [write(tmp_path, 1, 2)], 2: [write(tmp_path, 2, 5)]},
        out_of_reach={3: "it is about nodes."},
        left_out={1: "everything else."},
    )
    assert numbers.missing() == [4]
    assert report("quota", numbers) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "quota (docs/semantics/quota.md): 4 scenarios, 2 stories",
        "  1  pass          A job of 2 GPUs in a queue of four.",
        "                   Left out: everything else.",
    ]
    assert lines[3].startswith(
        "  2  FAIL          002-a-job: steps[1].cycle.w: expected an admission"
    )
    assert lines[-3:] == [
        "  3  out of reach  it is about nodes.",
        "  4  FAIL          has no story and no reason",
        "1 passed, 2 failed, 1 out of reach",
    ]


def test_an_area_must_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quotas"]) == 2
    assert (
        capsys.readouterr().err
        == "no area quotas; there are quota, gang, priority, backfill, provisioning, slurm, "
        "monitoring\n"
    )


def test_name_and_number_agree(tmp_path: Path) -> None:
    right = write(tmp_path, 7, 1)
    assert number_of(right) == 7
    with pytest.raises(BadScenario, match=r"spec must be `quota\.md, scenario 8`"):
        number_of(right.rename(right.with_name("008-a-job.yaml")))
    with pytest.raises(BadScenario, match="must be named like 015-what-happens"):
        number_of(tmp_path / "quota" / "eight.yaml")
