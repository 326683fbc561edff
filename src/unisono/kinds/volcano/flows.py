"""`flow.volcano.sh/v1alpha1` JobFlow and JobTemplate: Volcano jobs that follow each other.

A flow names JobTemplates of its namespace. Each of them makes one job, `FLOW-TEMPLATE`, once the
jobs of its targets are Completed. What a flow's patch says of the job's spec replaces what the
template says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta, wrong_with_subdomain
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Kind
from unisono.kinds.volcano.jobs import VolcanoJob, VolcanoJobSpec, check_job


class DependsOn(Schema, frozen=True, kw_only=True):
    """Jobs of the flow that must be completed first."""

    targets: tuple[str, ...] = ()
    probe: Any = None


class FlowPatch(Schema, frozen=True, kw_only=True):
    """What the job has instead of what its template says."""

    job_spec: Any = None


class Flow(Schema, frozen=True, kw_only=True):
    """One job of a flow."""

    name: str
    depends_on: DependsOn | None = None
    patch: FlowPatch | None = None


class JobFlowSpec(Schema, frozen=True, kw_only=True):
    """The jobs, and what becomes of them in the end."""

    flows: tuple[Flow, ...] = ()
    job_retain_policy: Literal["retain", "delete", ""] = ""


class FlowStatus(Schema, frozen=True, kw_only=True):
    """How far it is."""

    is_open: ClassVar[bool] = True


class JobFlow(Schema, frozen=True, kw_only=True):
    """Jobs that follow each other."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: JobFlowSpec = JobFlowSpec()
    status: FlowStatus = FlowStatus()


class JobTemplate(Schema, frozen=True, kw_only=True):
    """A job that flows make copies of."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: VolcanoJobSpec = VolcanoJobSpec()
    status: FlowStatus = FlowStatus()


def check_flow(flow: JobFlow, notes: Notes) -> None:
    """Report jobs that wait for jobs that there are not, or for each other."""
    flows = flow.spec.flows
    # Of several with one name, the last says what they wait for; there is one job of them.
    needs = {one.name: set(one.depends_on.targets) if one.depends_on else set() for one in flows}
    seen: set[str] = set()
    if not flows:
        notes.warn("FieldIgnored", "spec.flows", "is empty: the flow makes no jobs")
    for index, one in enumerate(flows):
        at = f"spec.flows[{index}]"
        if wrong := wrong_with_subdomain(one.name):
            notes.problem(f"{at}.name", wrong)
        if one.name in seen:
            notes.warn("FieldIgnored", f"{at}.name", f'there is one job for both of "{one.name}"')
        seen.add(one.name)
        missing = sorted(set(one.depends_on.targets) - needs.keys()) if one.depends_on else []
        if missing:
            message = f"jobflow Flow is not DAG: vertex is not defined: {', '.join(missing)}"
            notes.problem(f"{at}.dependsOn.targets", message)
        if one.depends_on is not None and one.depends_on.probe is not None:
            message = "has no effect, in Volcano neither: a target counts when it is Completed"
            notes.warn("FieldIgnored", f"{at}.dependsOn.probe", message)
    if circle := _circle(needs):
        message = f"jobflow Flow is not DAG: these wait for each other: {', '.join(circle)}"
        notes.problem("spec.flows", message)


def _circle(needs: Mapping[str, set[str]]) -> list[str]:
    """Return the names that can never be reached, in order; those that are unknown count as met."""
    left = {name: {one for one in needed if one in needs} for name, needed in needs.items()}
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]
    return sorted(left)


def check_template(template: JobTemplate, notes: Notes) -> None:
    """Report what would be wrong with every job of a template."""
    job = VolcanoJob(
        api_version="batch.volcano.sh/v1alpha1",
        kind="Job",
        metadata=template.metadata,
        spec=template.spec,
    )
    check_job(job, notes)


def patched(spec: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job's spec with what a flow says instead; tasks are matched by their names."""
    made = {**spec, **{name: value for name, value in patch.items() if name != "tasks"}}
    by_name = {
        task.get("name"): task for task in patch.get("tasks") or () if isinstance(task, dict)
    }
    if by_name:
        known = [task for task in spec.get("tasks") or () if isinstance(task, dict)]
        names = {task.get("name") for task in known}
        made["tasks"] = [{**task, **by_name.get(task.get("name"), {})} for task in known]
        made["tasks"] += [task for name, task in by_name.items() if name not in names]
    return made


KINDS = (
    Kind(
        group="flow.volcano.sh",
        version="v1alpha1",
        kind="JobFlow",
        struct=JobFlow,
        namespaced=True,
        check=check_flow,
    ),
    Kind(
        group="flow.volcano.sh",
        version="v1alpha1",
        kind="JobTemplate",
        struct=JobTemplate,
        namespaced=True,
        check=check_template,
    ),
)
