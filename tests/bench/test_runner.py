"""Kueue's runner as the source of the load: its arguments, and what is read of its output."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from bench.real.runner import NoRunner, bring

_PROGRAM = """#!/bin/sh
for flag in "$@"; do
  case "$flag" in --o=*) cd "${flag#--o=}" ;; esac
done
echo "$KUBECONFIG" > told
cat > wlStates.csv <<END
id,class name,namespace,name,ms to admitted,ms to finish,num evictions
0,small,a,one,1500,1800,2
1,large,a,two,250,1300,0
2,large,b,two,300,0,0
END
cat > summary.yaml <<END
clusterQueueClasses:
  cq:
    firstEventTime: "2026-01-01T00:00:59.5Z"
    lastEventTime: "2026-01-01T00:01:02.123456789Z"
END
"""


def _place(directory: Path) -> Any:
    return SimpleNamespace(directory=directory, plane=SimpleNamespace(kubeconfig="here"))


def _program(directory: Path, text: str) -> str:
    path = directory / "program"
    path.write_text(text)
    path.chmod(0o700)
    return str(path)


def test_what_it_recorded_is_read(tmp_path: Path) -> None:
    run = bring(_place(tmp_path), 0.1, command=_program(tmp_path, _PROGRAM))
    assert (tmp_path / "runner" / "told").read_text() == "here\n"
    assert run.waited == {"small": [1.5], "medium": [], "large": [0.25, 0.3]}
    assert (run.finished, run.evictions) == ({"a/one", "a/two"}, 2)
    assert run.ended - run.began == pytest.approx(2.623456)


def test_it_is_told_of_kueues_own_load(tmp_path: Path) -> None:
    bring(_place(tmp_path), 0.1, command=_program(tmp_path, _PROGRAM))
    (load,) = yaml.safe_load((tmp_path / "runner" / "load.yaml").read_text())
    (queues,) = load["queuesSets"]
    assert (load["count"], queues["count"], queues["nominalQuota"]) == (5, 6, "20")
    assert [one["count"] for one in queues["workloadsSets"]] == [35, 10, 5]
    small = queues["workloadsSets"][0]
    assert small["creationIntervalMs"] == 100
    (what,) = small["workloads"]
    assert what == {"className": "small", "runtimeMs": 200, "priority": 50, "request": "1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("#!/bin/sh\necho no cluster\nexit 3\n", "ended with 3: no cluster"), (None, "No such file")],
)
def test_why_there_is_no_result_is_said(tmp_path: Path, text: str | None, said: str) -> None:
    command = str(tmp_path / "nothing") if text is None else _program(tmp_path, text)
    with pytest.raises(NoRunner, match=said):
        bring(_place(tmp_path), 0.1, command=command)
