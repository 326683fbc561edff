"""From a short description of a dashboard to Grafana's JSON, through Grafana's own builders.

Panels flow from left to right on a grid of 24 columns; a row begins a new line. The builders leave
identifiers unset, so panels are numbered here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from grafana_foundation_sdk.builders import (
    bargauge,
    gauge,
    prometheus,
    stat,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DatasourceVariable,
    QueryVariable,
    Row,
    ThresholdsConfig,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableRefresh,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

Kind = Literal["timeseries", "stat", "gauge", "bargauge", "table"]

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_BUILDERS: dict[str, Any] = {
    "timeseries": timeseries.Panel,
    "stat": stat.Panel,
    "gauge": gauge.Panel,
    "bargauge": bargauge.Panel,
    "table": table.Panel,
}
# Tables and numbers show what is now; lines show what was.
_INSTANT = ("stat", "gauge", "bargauge", "table")


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and how its series are named."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    title: str
    queries: Sequence[Query]
    kind: Kind = "timeseries"
    unit: str = "short"
    width: int = 12
    height: int = 8
    least: float | None = None
    most: float | None = None
    thresholds: Sequence[tuple[float | None, str]] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A row with its panels."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of a dashboard."""

    name: str
    label: str
    values: str  # label_values(…)


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard."""

    uid: str
    title: str
    description: str
    sections: Sequence[Section]
    variables: Sequence[Variable] = field(default_factory=tuple)


def json_of(board: Board) -> str:
    """Return a dashboard as Grafana reads it."""
    built = Dashboard(board.title).uid(board.uid).description(board.description)
    built = built.tags(["unisono"]).refresh("30s").time("now-6h", "now").timezone("browser")
    built = built.with_variable(
        DatasourceVariable("datasource").label("Prometheus").type("prometheus")
    )
    for one in board.variables:
        built = built.with_variable(
            QueryVariable(one.name)
            .label(one.label)
            .datasource(SOURCE)
            .query(one.values)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(multi=True)
            .include_all(include_all=True)
            .all_value(".*")
        )
    for section in board.sections:
        built = built.with_row(Row(section.title))
        for panel in section.panels:
            built = built.with_panel(_panel(panel))
    made = json.loads(json.dumps(built.build(), cls=JSONEncoder))
    for number, one in enumerate(made["panels"], 1):
        one["id"] = number
    return json.dumps(made, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _panel(panel: Panel) -> Any:
    made = _BUILDERS[panel.kind]().title(panel.title).unit(panel.unit).datasource(SOURCE)
    made = made.span(panel.width).height(panel.height)
    if panel.description:
        made = made.description(panel.description)
    if panel.least is not None:
        made = made.min(panel.least)
    if panel.most is not None:
        made = made.max(panel.most)
    if panel.thresholds:
        steps = [Threshold(value=value, color=color) for value, color in panel.thresholds]
        made = made.thresholds(ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        target = prometheus.Dataquery().expr(query.expression).ref_id(letter)
        if query.legend:
            target = target.legend_format(query.legend)
        if panel.kind in _INSTANT:
            target = target.instant()
        if panel.kind == "table":
            target = target.format(PromQueryFormat.TABLE)
        made = made.with_target(target)
    return made
