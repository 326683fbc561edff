"""Every page by its name; pages of the past read the ledger.

`Pages.show` returns a page for a person. The server refreshes the dashboard; what is read
from the ledger is kept for a quarter of a minute, because that is how often it is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from unisono.language import LANGUAGES, Language
from unisono.language.catalog import translated
from unisono.monitor.active_alerts import AlertBoard
from unisono.monitor.gpu_history import GpuHistory
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.gpus import Gpus
from unisono.web.view_models import PageModel
from unisono.web.views.alerts import alerts as alerts_page
from unisono.web.views.gang import gang
from unisono.web.views.nodes import gpu_map, node, nodes
from unisono.web.views.overview import overview
from unisono.web.views.queues import queues
from unisono.web.views.timeline import Past, timeline, window_of
from unisono.web.views.workloads import workloads

_KEPT_S = 15.0
_MOVES_S = 5.0
_MOST_KEPT = 16
_REUSE_S = 60.0
_MOST_SHOWN = 64
# Pages that show what GPUs do, and become others with every measurement.
_MEASURED = frozenset(("overview", "workloads", "gang", "map", "nodes", "node"))
# Those that show alerts.
_ALARMED = frozenset(("overview", "alerts"))

# What was between two seconds.
ReadPast = Callable[[int, int], Awaitable[Past]]


class File(NamedTuple):
    """Something to keep: a report."""

    name: str
    content_type: str
    body: bytes


# A report of the time between two seconds, in a format.
WriteReport = Callable[[int, int, str], Awaitable[File]]
View = Callable[[Dashboard, Mapping[str, str], Permissions], PageModel]


# Where rows and heads have sentences; what else they have are names and numbers.
_SENTENCES = frozenset(
    ("says", "changes", "inTheWay", "ways", "bad", "summary", "about", "lastEviction", "ended")
)


def _in_language(made: PageModel, asked: str) -> PageModel:
    language: Language = next((one for one in LANGUAGES if one == asked), "en")
    if language == "en":
        return made
    rows = {name: translated(row, _SENTENCES, language) for name, row in made.rows.items()}
    return PageModel(translated(made.head, _SENTENCES, language), rows)


class Pages:
    """Knows every page."""

    def __init__(
        self,
        dashboard: Dashboard,
        *,
        now: Callable[[], float],
        past: ReadPast | None = None,
        report: WriteReport | None = None,
        reuse: float = _REUSE_S,
        history: GpuHistory | None = None,
        alerts: AlertBoard | None = None,
        grafana: str = "",
    ) -> None:
        """Show this dashboard; without `past` and `report` there is no ledger.

        `history` is what GPUs did lately; without it pages show only which workload has them.
        `alerts` are those that hold now; with `grafana`, its address, pages link to its panels.
        """
        self._gpus = gpus = Gpus(dashboard, history, now=now) if history is not None else None
        self.dashboard = dashboard
        self._alerts = alerts
        self.report = report
        self._now = now
        self.looked_at = 0.0  # when a page was last made or asked for
        self._past = past
        self._kept: dict[tuple[str, str], tuple[float, Past]] = {}
        # A page for several users is made once: by what was asked and what may be seen.
        self._shown: dict[tuple[object, Permissions], tuple[tuple[int, int], PageModel]] = {}
        self._views: dict[str, View] = {
            "overview": partial(overview, gpus=gpus, board=alerts),
            "alerts": partial(alerts_page, board=alerts, grafana=grafana),
            "queues": partial(queues, grafana=grafana),
            "workloads": partial(workloads, gpus=gpus),
            "gang": partial(gang, gpus=gpus, grafana=grafana),
            "map": partial(gpu_map, gpus=gpus),
            "nodes": partial(nodes, reuse=reuse, gpus=gpus),
            "node": partial(node, reuse=reuse, gpus=gpus),
        }

    def has(self, page: str) -> bool:
        """Say whether there is such a page."""
        return page in self._views or page == "timeline"

    def version(self, asked: Mapping[str, str]) -> tuple[int, int]:
        """Take in what happened; return what tells whether a page may have become another."""
        self.looked_at = self._now()
        # What is shown of a time that goes along becomes another with the time, too.
        is_moving = asked.get("page") == "timeline" and not asked.get("end")
        if is_moving:
            return self.dashboard.refresh(), int(self._now() // _MOVES_S)
        if asked.get("page") in _ALARMED and self._alerts is not None:
            beside = self._alerts.version << 32
        else:
            beside = 0
        gpus = self._gpus if asked.get("page") in _MEASURED else None
        return self.dashboard.refresh(), beside + (gpus.version if gpus is not None else 0)

    async def show(self, asked: Mapping[str, str], permissions: Permissions) -> PageModel:
        """Return a page as it is now."""
        key = tuple(sorted(asked.items())), permissions
        version = self.version(asked)
        known = self._shown.get(key)
        if known is not None and known[0] == version:
            return known[1]
        made = await self._make(asked, permissions)
        self._shown.pop(key, None)
        while len(self._shown) >= _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
        self._shown[key] = version, made
        return made

    async def _make(self, asked: Mapping[str, str], permissions: Permissions) -> PageModel:
        page = asked.get("page", "")
        view = self._views.get(page)
        if view is not None:
            return _in_language(view(self.dashboard, asked, permissions), asked.get("lang", ""))
        now = self._now()
        past = await self._read(asked, now)
        return timeline(self.dashboard, asked, permissions, now=now, past=past)

    async def _read(self, asked: Mapping[str, str], now: float) -> Past:
        if self._past is None:
            return Past()
        key = asked.get("span", ""), asked.get("end", "")
        at, found = self._kept.get(key, (0.0, Past()))
        if now - at >= _KEPT_S:
            window = window_of(asked, now)
            found = await self._past(int(window.since), int(window.until) + 1)
            while len(self._kept) >= _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = now, found
        return found
