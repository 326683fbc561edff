"""How Volcano's test programs and vcctl are built.

The module's sources are copied into the user's cache, and a few lines of the copy are written
otherwise:

    types       are a module of their own, which a published module cannot bring along; the newest
                that is published stands in, and what it lacks is written out
    clean-up    a job or pod may be gone already, since a namespace is emptied here faster than the
                helpers look; queues with a guarantee go with their spec, too, or they would keep
                it from all that follow
    waiting     the helper that waits for pending pods counts those that are missing (`pending.go`):
                a job that waits for nodes has no pods yet
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.suites.golang import CannotBuild, cache, copied, go, write

VERSION = "v1.15.1"
_MODULE = f"volcano.sh/volcano@{VERSION}"
_TYPES = "volcano.sh/apis v1.14.0"
# Every package of specs, by the name that is used here.
PACKAGES = {
    name: f"test/e2e/{name}"
    for name in ("admission", "jobp", "jobseq", "schedulingbase", "schedulingaction", "vcctl")
}
# What is written otherwise: a file, what it says, and what it is to say.
_CHANGES = (
    (
        "go.mod",
        "volcano.sh/apis => ./staging/src/volcano.sh/apis",
        f"volcano.sh/apis => {_TYPES}",
    ),
    (
        "pkg/scheduler/api/helpers.go",
        "schedulingv1beta1.QueueAllocationGateKey",
        'schedulingv1beta1.GroupName+"/queue-allocation-gate"',
    ),
    (
        "test/e2e/util/queue.go",
        'Expect(err).NotTo(HaveOccurred(), "failed to delete vcjob',
        'Expect(errors.IsNotFound(err) || err == nil).To(BeTrue(), "failed to delete vcjob',
    ),
    (
        "test/e2e/util/util.go",
        'Expect(err).NotTo(HaveOccurred(), "failed to delete pod %s"',
        'Expect(errors.IsNotFound(err) || err == nil).To(BeTrue(), "failed to delete pod %s"',
    ),
    *(
        (
            "test/e2e/schedulingaction/guarantee.go",
            f"e2eutil.CreateQueueWithQueueSpec(ctx, {queue})",
            f"e2eutil.CreateQueueWithQueueSpec(ctx, {queue})\n"
            f"\t\tctx.Queues = append(ctx.Queues, {queue}.Name)",
        )
        for queue in ("queue1", "queue2")
    ),
    (
        "test/e2e/util/job.go",
        "phase []v1.PodPhase, taskNum int) error {\n",
        "phase []v1.PodPhase, taskNum int) error {\n\tif waitsForPending(phase) {\n"
        "\t\treturn waitTasksPendingOrMissing(ctx, job, taskNum)\n\t}\n",
    ),
)
_OURS = {"test/e2e/util/pending.go": Path(__file__).with_name("pending.go")}
_FLAGS = "-mod=mod"  # the other types are not in the module's list of sums


def programs(names: list[str]) -> dict[str, Path]:
    """Return the test program of each package, built if it is not there yet."""
    source = _patched()
    found = {}
    for name in names:
        program = directory() / f"{name}.test"
        go("test", "-c", "-o", str(program), f"./{PACKAGES[name]}", at=source, flags=_FLAGS)
        found[name] = program
    return found


def vcctl() -> Path:
    """Return the real vcctl, built if it is not there yet."""
    program = directory() / "bin" / "vcctl"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        go("build", "-o", str(program), "./cmd/cli", at=_patched(), flags=_FLAGS)
    return program


def directory() -> Path:
    """Return the folder of what is built."""
    return cache(f"volcano-{VERSION}")


def _patched() -> Path:
    """Return the copy of the sources, patched."""
    said = go("mod", "download", "-json", _MODULE, at=Path.home())
    source = Path(json.loads(said)["Dir"])
    place = copied(source, directory() / "source", "docs", "website")
    for path, ours in _OURS.items():
        write(place / path, ours.read_text())
    texts: dict[str, str] = {}
    for path, old, new in _CHANGES:
        text = texts.get(path) or (source / path).read_text()
        if old not in text:
            raise CannotBuild(f"{path} of {_MODULE} is not as expected; see {Path(__file__).name}")
        texts[path] = text.replace(old, new)
    for path, text in texts.items():
        # Go itself writes into go.mod.
        if path != "go.mod" or _TYPES not in (place / path).read_text():
            write(place / path, text)
    return place
