"""How Kueue's test programs are built so that they use our cluster and our manager.

The module's sources are copied into the user's cache, and some files of the copy are replaced.
Some of them are whole files of ours (`*.go` beside this); the others get a line at the start of
some functions, which then note with which configuration a manager is wanted. A copy and not Go's
own overlay, which refuses to stand in for files of the module cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.suites.golang import CannotBuild, cache, copied, go, write

VERSION = "v0.19.2"
_MODULE = f"sigs.k8s.io/kueue@{VERSION}"
_HERE = Path(__file__).resolve().parent
_SINGLE = "test/integration/singlecluster"
# Every package of specs, by the name that is used here.
PACKAGES = {
    "scheduler": f"{_SINGLE}/scheduler",
    "fairsharing": f"{_SINGLE}/scheduler/fairsharing",
    "podsready": f"{_SINGLE}/scheduler/podsready",
    "tas": f"{_SINGLE}/tas",
    "inadmissible": f"{_SINGLE}/scheduler/inadmissible",
    "delayedadmission": f"{_SINGLE}/scheduler/delayedadmission",
    "excluderesources": f"{_SINGLE}/scheduler/excluderesources",
    "resourcetransformations": f"{_SINGLE}/scheduler/resourcetransformations",
    "quotacheckstrategy": f"{_SINGLE}/scheduler/quotacheckstrategy",
}
_SUITE = "sigs.k8s.io/kueue/test/suite"
# What reads the registry of a spec's own process, by the name that it has in the specs.
_OF_ITS_PROCESS = {
    "k8s.io/component-base/metrics/testutil": "testutil",
    "sigs.k8s.io/kueue/pkg/util/testing/metrics": "testingmetrics",
}
_OURS = {
    "test/suite/suite.go": "suite.go",
    "test/suite/values/values.go": "values.go",
    "test/integration/framework/framework.go": "framework.go",
}


def programs(names: list[str]) -> dict[str, Path]:
    """Return the test program of each package, built if it is not there yet."""
    source = _patched()
    found = {}
    for name in names:
        program = directory() / f"{name}.test"
        go("test", "-c", "-o", str(program), f"./{PACKAGES[name]}", at=source)
        found[name] = program
    return found


def kueuectl() -> Path:
    """Return the real kueuectl, built if it is not there yet."""
    program = directory() / "kueuectl"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        go("build", "-o", str(program), "./cmd/kueuectl", at=_source())
    return program


def directory() -> Path:
    """Return the folder of what is built."""
    return cache(f"kueue-{VERSION}")


def _source() -> Path:
    """Return the folder of the module, downloaded if it is not there yet."""
    said = go("mod", "download", "-json", _MODULE, at=Path.home())
    return Path(json.loads(said)["Dir"])


# ---- what stands in for files of the module ------------------------------------------------------


def _patched() -> Path:
    """Return the copy of the sources, patched."""
    source = _source()
    place = copied(source, directory() / "source", "site", "keps")
    for path, name in _OURS.items():
        write(place / path, (_HERE / name).read_text())
    for path, change in _changes(source):
        text = (source / path).read_text()
        new = change(text)
        if new == text:
            raise CannotBuild(f"{path} of {_MODULE} is not as expected; see {Path(__file__).name}")
        write(place / path, new)
    return place


def _changes(source: Path) -> Iterator[tuple[str, Callable[[str], str]]]:
    yield (
        "pkg/controller/core/core.go",
        _noting(
            {
                r"func SetupControllers\(.*\{\n": "suite.Configuration = cfg\n\t"
                'if true {\n\t\treturn "", nil\n\t}\n'
            }
        ),
    )
    yield (
        "pkg/cache/queue/manager.go",
        _noting(
            {
                r"func WithResourceTransformations\(.*\{\n": "suite.Transformations = transforms\n",
                r"func WithExcludedResourcePrefixes\(.*\{\n": "suite.Excluded = excludedPrefixes\n",
            }
        ),
    )
    yield (
        "pkg/scheduler/scheduler.go",
        _noting(
            {
                r"func WithFairSharing\(.*\{\n": "suite.FairSharing = fs\n",
                r"func WithQuotaCheckStrategy\(.*\{\n": "suite.QuotaChecks = qcs\n",
                r"func \(s \*Scheduler\) Start\(.*\{\n": "if true {\n\t\treturn nil\n\t}\n",
            }
        ),
    )
    yield (
        "test/util/metrics.go",
        _both(
            _noting(
                {r"func Expect\w+\((?!ctx).*\{\n": "if suite.SkipsMetrics() {\n\t\treturn\n\t}\n"}
            ),
            _our_values,
        ),
    )
    for path in sorted((source / _SINGLE).glob("**/*_test.go")):
        text = path.read_text()
        if any(f'"{one}"' in text for one in _OF_ITS_PROCESS):
            yield str(path.relative_to(source)), _both(_our_values, _going_on)
        elif _going_on(text) != text:
            yield str(path.relative_to(source)), _going_on


def _both(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: second(first(text))


def _noting(lines: dict[str, str]) -> Callable[[str], str]:
    """Add lines at the start of functions, and the import that they need."""

    def change(text: str) -> str:
        for pattern, line in lines.items():
            text, count = re.subn(f"({pattern})", rf"\g<1>\t{_quoted(line)}", text)
            if not count:
                raise CannotBuild(f"no {pattern} in {_MODULE}; see {Path(__file__).name}")
        return text.replace("import (\n", f'import (\n\t"{_SUITE}"\n', 1)

    return change


def _quoted(line: str) -> str:
    """Return a line as the replacement of an expression, where a backslash means something."""
    return line.replace("\\", r"\\")


def _going_on(text: str) -> str:
    """Have all specs of an ordered suite run, also behind one that fails."""
    return re.sub(
        r"(\bginkgo\.Describe\(.*\bginkgo\.Ordered\b)(?!, ginkgo\.ContinueOnFailure)",
        r"\1, ginkgo.ContinueOnFailure",
        text,
    )


def _our_values(text: str) -> str:
    """Have values of metrics read from our pages instead of the program's own registry."""
    for one, name in _OF_ITS_PROCESS.items():
        text = re.sub(rf'(\n\t)(\w+ )?"{re.escape(one)}"', rf'\1{name} "{_SUITE}/values"', text)
    return text
