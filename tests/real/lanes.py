"""Which real tests share servers, and which begin first: a plugin for running them side by side.

A *lane* is what one process runs in one go, a file unless said otherwise here. Tests of one lane
share the servers that their fixtures start; no lane needs anything of another. Long lanes begin
first, so that none is alone at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it has no types

if TYPE_CHECKING:
    from xdist.remote import Producer  # type: ignore[import-untyped]  # nor this
    from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # nor this

# Files that ask the same control plane, of which a process has one.
TOGETHER = {"conformance": ("tests/conformance/", "tests/kube/", "tests/apiserver/")}
# Files whose every test has servers of its own, if any.
APART = (
    "tests/docs/",
    "tests/runner/",
    "tests/real/slurm/test_deadlock.py",
    "tests/real/test_web_on_paper.py",
)
# Files that tell one story on one cluster: no chapter can be told without those before it.
IN_ORDER = (
    "tests/real/test_controller.py",
    "tests/real/test_deploy.py",
    "tests/real/test_seeds.py",
    "tests/real/test_webhook.py",
)
# The first makes a cluster with our manifests; those that begin with a copy of it come after some
# that have servers of their own.
LONGEST_FIRST = (
    "tests/real/test_faults.py",
    "tests/real/test_controller.py",
    "conformance",
    "tests/kubectl/test_transcripts.py",
    "tests/real/slurm/test_trouble.py",
    "tests/real/test_leaders.py",
    "tests/real/test_paused_leader.py",
    "tests/real/test_monitoring.py",
    "tests/real/test_machines.py",
    "tests/real/slurm/test_gate.py",
    "tests/real/slurm/test_deadlock.py",
    "tests/real/test_deploy.py",
    "tests/real/test_webhook.py",
    "tests/real/slurm/test_priorities.py",
    "tests/real/test_crds.py",
    "tests/real/test_stories.py",
    "tests/real/test_seeds.py",
    "tests/real/slurm/test_real_api.py",
    "tests/real/test_web.py",
    "tests/real/slurm/test_modes.py",
)


def lane_of(test: str) -> str:
    """Return the lane of a test, by its name as pytest prints it."""
    for lane, beginnings in TOGETHER.items():
        if test.startswith(beginnings):
            return lane
    return test if test.startswith(APART) else test.partition("::")[0]


def submit_options_of(test: str) -> int:
    """Return the place of a test's lane among those that begin early, or the place after them."""
    found = (lane_of(test), test.partition("::")[0])
    early = (place for place, one in enumerate(LONGEST_FIRST) if one in found)
    return next(early, len(LONGEST_FIRST))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long lanes first; within a lane nothing changes its place."""
    items.sort(key=lambda one: submit_options_of(one.nodeid))


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # nor its base
    """Give whole lanes to workers that have nothing left to do."""

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        """Give a process its next lane when it begins the last test of this one, and no earlier.

        It has to know what comes next to end a test; no other worker can begin a lane that it has.
        """
        has_more = self._pending_of(self.assigned_work[node]) > 1
        if not has_more or not self.workqueue:
            super()._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Lanes:
    """Have tests handed out by the lane, in our order.

    Unless told otherwise, xdist begins with lanes of many tests; those that take longest have few.
    """
    config.option.loadscopereorder = False
    return Lanes(config, log)


# ---- what failed, for a second go ----------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take where to write the names of tests that failed."""
    parser.addoption("--failures-to", help="write the names of tests that failed into this file")


def pytest_configure(config: pytest.Config) -> None:
    """Listen to what fails; with xdist only the process that hands tests out does."""
    path = config.getoption("--failures-to")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(Path(path)))


class Failures:
    """Writes down which tests failed, or could not be prepared."""

    def __init__(self, path: Path) -> None:
        """Take the file; there is none if nothing fails."""
        self._path = path
        self._names: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See how one went."""
        if report.failed:
            self._names[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        """Write them down, in the order in which they failed."""
        if self._names:
            self._path.write_text("".join(f"{one}\n" for one in self._names), encoding="utf-8")
