"""Numbers in texts: whatever stands there, a reader answers or says what is wrong.

Texts come from labels, annotations, arguments, queries and conditions, which are unchecked. A
reader returns a number of a sensible size or what stands for none, or raises the one exception that
it promises. It never breaks, and digits of other scripts are none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unisono
from tests.support.effort import effort
from unisono.apiserver.errors import ApiError
from unisono.apiserver.request import Request, User
from unisono.apiserver.rest.read import check_version
from unisono.apiserver.rest.selectors import number as query_number
from unisono.apiserver.rest.selectors import parse_labels
from unisono.apiserver.schema.fill import canonical
from unisono.cli import start_times
from unisono.control import names
from unisono.control.admission import placement, record
from unisono.control.admission.placement import in_phase
from unisono.control.gangs import recovery
from unisono.control.gangs import repair as repairing
from unisono.control.job_kinds.batch.completion import parse_indexes
from unisono.control.job_kinds.volcano.pods import port_of
from unisono.engine.model.names import Instant
from unisono.kinds import job_annotations, karpenter, spelling, times
from unisono.kinds.core import gpu_parts, pod_groups, topology
from unisono.kinds.digits import whole_number
from unisono.kinds.expressions.formats import duration_seconds, pattern_problem
from unisono.kinds.notes import Notes
from unisono.kinds.policy import multifactor
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Duration
from unisono.kube.form import Json
from unisono.provision import disruption_budgets
from unisono.provision.catalog import nodes
from unisono.runner.process import probes
from unisono.runner.simulated import agents, script
from unisono.slurm import file_names, labels, site
from unisono.slurm import times as slurm_times
from unisono.slurm.bridge import cluster_view, hooks
from unisono.slurm.commands import scontrol
from unisono.slurm.sbatch import arrays as slurm_arrays
from unisono.slurm.sbatch import layout
from unisono.web.views import gang, timeline

SOURCE = Path(unisono.__file__).parent
LONG = "9" * 10_000
HOSTILE = (
    LONG,
    "1" + "0" * 4301,
    f"1.{LONG}",
    f"-{LONG}",
    f"{LONG}%",
    f"1e{LONG}",
    "1e9999999",
    "1e-9999999",
    "1e400",
    "1e308",
    "9" * 19,
    str(2**63),
    "٣",
    "１２",
    "௧",
    "²",
    "1e²",
    "1_0",
    " 1 ",
    "1\n",
    "+1",
    "-1",
    "0x10",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "",
    "\x00",
    "%",
    "0",
    "1",
)
OTHER_SCRIPTS = ("٣", "１２", "௧", "²")


def _conditions(message: str) -> list[Json]:
    return [
        {
            "type": "unisono.dev/Placement",
            "status": "True",
            "reason": "Committing",
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


def _annotated(key: str, text: str) -> Json:
    return {"metadata": {"name": "a", "annotations": {key: text}}, "status": {}, "spec": {}}


READERS: dict[str, tuple[Callable[[str], Any], tuple[type[Exception], ...]]] = {
    "any whole number": (whole_number, ()),
    "a quantity": (lambda text: Quantity.from_raw(text).nano, (ValueError,)),
    "a canonical quantity": (lambda text: canonical(text, in_thousandths=True), (ValueError,)),
    "a duration": (lambda text: Duration.from_raw(text).ms, (ValueError,)),
    "a time limit": (times.limit_ms, (ValueError,)),
    "an instant": (lambda text: times.instant_of(f"now+{text}", Instant(0)), (ValueError,)),
    "a dependency": (
        lambda text: job_annotations.read_dependencies(f"after:a+{text}", "ns"),
        (ValueError,),
    ),
    "an array": (lambda text: job_annotations.read_array(f"a%{text}"), (ValueError,)),
    "a part of a GPU": (
        lambda text: gpu_parts.with_parts({}, {gpu_parts.KAI_FRACTION: text}),
        (),
    ),
    "a number of GPUs": (
        lambda text: gpu_parts.with_parts({}, {gpu_parts.ALIBABA_COUNT: text}),
        (),
    ),
    "a device": (lambda text: gpu_parts.device_of({"alibabacloud.com/gpu-index": text}), ()),
    "pods of a group": (
        lambda text: pod_groups._total(
            SimpleNamespace(  # type: ignore[arg-type]
                metadata=SimpleNamespace(annotations={pod_groups.TOTAL_COUNT: text})
            )
        ),
        (),
    ),
    "a slice": (
        lambda text: topology.topology_request(
            {topology.SLICE_LEVEL: "rack", topology.SLICE_SIZE: text}
        ),
        (),
    ),
    "priority words": (
        lambda text: multifactor._whole({"nice": ("a", text)}, "nice", 0, 10, Notes("a", 0)),
        (),
    ),
    "a requirement": (
        lambda text: [
            karpenter.requirement_of(
                karpenter.MachineRequirement(key="a", operator=sign, values=(text,))
            )
            for sign in ("Gt", "Lt", "Gte", "Lte")
        ],
        (),
    ),
    "a rate of interruptions": (karpenter._rate_milli, ()),
    "an API version": (lambda text: spelling._is_older(f"v{text}", "v1beta1"), ()),
    "a pattern": (lambda text: pattern_problem(f"a{{{text}}}"), ()),
    "a label selector": (lambda text: parse_labels(f"a > {text}"), (ApiError,)),
    "a label that is compared": (lambda text: parse_labels("a > 1")({"a": text}), ()),
    "a duration of a schema": (duration_seconds, ()),
    "a number of a query": (
        lambda text: query_number(
            Request(method="GET", path="/", query={"limit": text}, user=User(name="a")), "limit"
        ),
        (ApiError,),
    ),
    "a resource version": (check_version, (ApiError,)),
    "a limit of restarts": (lambda text: recovery.limit_of({recovery.MAX_RESTARTS: text}), ()),
    "a delay": (lambda text: recovery.first_delay_of({recovery.FIRST_DELAY: text}), ()),
    "a timeout": (lambda text: repairing.timeout_of(_annotated(repairing.TIMEOUT, text)), ()),
    "the number of a placement": (
        lambda text: placement.next_gen(_conditions(f"gen={text} epoch={text}")),
        (),
    ),
    "the phase of a placement": (
        lambda text: in_phase(_conditions(f"gen={text} epoch={text}"), "Committed", 0.0, 0.0),
        (),
    ),
    "the fence of a placement": (
        lambda text: placement.fenced(
            {"status": {"conditions": _conditions(f"gen={text} {placement.FENCE}={text}")}}, 0.0
        ),
        (),
    ),
    "the epoch of a placement": (
        lambda text: placement.stamped(
            {"status": {"conditions": _conditions(f"gen={text} epoch={text}")}}, 5
        ),
        (),
    ),
    "a limit that was granted": (
        lambda text: record.granted_ms(
            {
                "metadata": {"annotations": {times.TIME_MIN: "1"}},
                "status": {"conditions": [{"type": names.GRANTED, "message": text}]},
            }
        ),
        (),
    ),
    "completed indexes": (parse_indexes, ()),
    "completed spans": (lambda text: parse_indexes(f"0-{text}"), ()),
    "a port of a plugin": (lambda text: port_of([f"--port={text}"], "1"), ()),
    "a share of nodes": (
        lambda text: disruption_budgets._bound({"nodes": f"{text}%"}, 10, 0.0),
        (),
    ),
    "a number of nodes": (lambda text: disruption_budgets._bound({"nodes": text}, 10, 0.0), ()),
    "a schedule": (
        lambda text: disruption_budgets.is_active(
            f"{text or 'x'}/{text or 'x'} * * * *", "10m", 0.0
        ),
        (ValueError,),
    ),
    "a shape of nodes": (lambda text: nodes.parse_shape(f"{text}xa"), (nodes.BadShape,)),
    "a port of a probe": (lambda text: probes._port(text, {}), ()),
    "an attempt": (
        lambda text: script.attempts_before(_annotated(script._ATTEMPTS[0], text), ()),
        (),
    ),
    "a number of a script": (
        lambda text: script._Annotations(_annotated(f"{script.PREFIX}b", text), "").whole("b", 0),
        (),
    ),
    "a simulated step": (lambda text: agents._whole(_annotated("a", text), "a"), ()),
    "a simulated pace": (
        lambda text: agents._number(_annotated(agents.PACE, text)),
        (),
    ),
    "a rank": (lambda text: gang._rank(SimpleNamespace(rank=text, name="a")), ()),  # type: ignore[arg-type]
    "a moment of a page": (lambda text: timeline._number(text, 1.0), ()),
    "a start": (start_times._seconds, ()),
    "memory of sbatch": (layout.mib_of, (layout.BadRequest,)),
    "a number of sbatch": (lambda text: layout._number({"n": text}, "n"), (layout.BadRequest,)),
    "a typed number of sbatch": (
        lambda text: layout._typed({"gpus": f"a:{text}"}, "gpus", ""),
        (layout.BadRequest,),
    ),
    "nodes of sbatch": (lambda text: layout.nodes_asked({"nodes": text}), (layout.BadRequest,)),
    "an array of sbatch": (
        lambda text: slurm_arrays.read_array(f"0-{text}:{text}%{text}"),
        (slurm_arrays.BadArray,),
    ),
    "a gres": (lambda text: labels.gres_of(f"gpu:{text}"), (ValueError,)),
    "a moment of sbatch": (lambda text: slurm_times.parse_time(f"now+{text}", 0.0), (ValueError,)),
    "a limit of an array": (
        lambda text: scontrol.job_changes(
            {"arraytaskthrottle": text}, {"spec": {"array": {}}, "status": {}}, 0.0
        ),
        (ValueError,),
    ),
    "a width of a file name": (lambda text: file_names.file_name(f"%{text}j", {"j": "1"}), ()),
    "a number of slurm.conf": (site._number, ()),
    "cores of slurm": (site.cores_of, ()),
    "memory of slurm": (site.mib_of_quantity, ()),
    "a number of the bridge": (cluster_view._int, ()),
    "a request of the bridge": (lambda text: hooks._read(f"submit {text}"), ()),
}


def _answer(name: str, text: str) -> Any:
    read, promised = READERS[name]
    try:
        return read(text)
    except promised:
        return None


@pytest.mark.parametrize("name", READERS)
def test_a_reader_answers_or_refuses(name: str) -> None:
    for text in HOSTILE:
        answer = _answer(name, text)
        if isinstance(answer, int | float):
            assert abs(answer) < 10**30 or answer == float("inf"), text[:20]


@effort(20)
@given(
    name=st.sampled_from(sorted(READERS)),
    text=st.text("0123456789+-.eE_% ٣²١nifa:", max_size=30) | st.text(max_size=20),
)
def test_a_reader_answers_or_refuses_anything(name: str, text: str) -> None:
    _answer(name, text)


@pytest.mark.parametrize("text", OTHER_SCRIPTS)
def test_digits_of_other_scripts_are_no_numbers(text: str) -> None:
    assert whole_number(text) is None


def _checks() -> Iterator[str]:
    """Yield where a text is asked whether it has only digits, of whatever script."""
    for path in sorted(SOURCE.rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\.is(decimal|digit|numeric)\(\)", line):
                yield f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"


def test_numbers_in_texts_are_read_in_one_place() -> None:
    """`int` refuses more than 4,300 digits, and `isdecimal` takes digits of all scripts."""
    allowed = ("kinds/digits.py",)
    assert [one for one in _checks() if not one.startswith(allowed)] == []
