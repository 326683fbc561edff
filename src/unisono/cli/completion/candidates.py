"""Names of objects for a shell that completes a word: asked of the cluster, quickly or not at all.

    unisono why job/<TAB>        unisono get cq <TAB>        unisono plan -q <TAB>

The user who presses the key waits: after a second, or without an answer, there is simply nothing
to offer. Nothing that takes long to load is loaded here.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Mapping, Sequence
from types import FrameType

_MOST_SECONDS = 1.0
# A longer list takes longer to read than the name takes to type.
_MOST_NAMES = 500

_KUEUE = "apis/kueue.x-k8s.io/v1beta2"
_NODES = "api/v1/nodes"
_QUEUES = f"{_KUEUE}/clusterqueues"
# By their short names too; {} is where the namespace goes.
_KINDS: Mapping[tuple[str, ...], str] = {
    ("job", "jobs"): "apis/batch/v1/{}jobs",
    ("jobset", "jobsets"): "apis/jobset.x-k8s.io/v1alpha2/{}jobsets",
    ("trainjob", "trainjobs"): "apis/trainer.kubeflow.org/v1alpha1/{}trainjobs",
    ("vcjob", "vj"): "apis/batch.volcano.sh/v1alpha1/{}jobs",
    ("raycluster", "rayclusters"): "apis/ray.io/v1/{}rayclusters",
    ("rayjob", "rayjobs"): "apis/ray.io/v1/{}rayjobs",
    ("pytorchjob", "pytorchjobs"): "apis/kubeflow.org/v1/{}pytorchjobs",
    ("workload", "workloads", "wl"): f"{_KUEUE}/{{}}workloads",
    ("pod", "pods", "po"): "api/v1/{}pods",
    ("localqueue", "localqueues", "lq"): f"{_KUEUE}/{{}}localqueues",
    ("clusterqueue", "clusterqueues", "cq"): _QUEUES,
    ("cohort", "cohorts"): f"{_KUEUE}/cohorts",
    ("resourceflavor", "resourceflavors", "rf"): f"{_KUEUE}/resourceflavors",
    ("node", "nodes", "no"): _NODES,
    ("nodepool", "nodepools"): "apis/karpenter.sh/v1/nodepools",
    ("namespace", "namespaces", "ns"): "api/v1/namespaces",
}
_JOBS = ("job", "jobset", "trainjob", "vcjob", "raycluster", "rayjob", "pytorchjob", "workload")
_OF_OBJECTS = ("why", "get", "describe", "delete", "logs")
_VALUES = {"-q": _QUEUES, "--queue": _QUEUES, "-n": "api/v1/namespaces"}
_VALUES["--namespace"] = _VALUES["-n"]
_OPTIONS = {"-n": "namespace", "--namespace": "namespace", "--data-dir": "data-dir"}
_OPTIONS |= {"--kubeconfig": "kubeconfig", "--context": "context"}


def offered(words: Sequence[str]) -> list[str]:
    """Return what the last of the words after `unisono` may become; nothing if that is unknown."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    try:
        return _offered(words)
    except Exception:  # noqa: BLE001  (no traceback into the line that is typed)
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


def _offered(words: Sequence[str]) -> list[str]:
    command, *before, word = words
    if before and before[-1] in _VALUES:
        return _names(_VALUES[before[-1]], before, word)
    if command == "gpu" and before and before[0] in ("inject", "heal"):
        return _names(_NODES, before, word)
    if command not in _OF_OBJECTS:
        return []
    places = _places(before)
    kind, slash, _ = word.partition("/")
    if slash:
        path = _path(kind)
        return [f"{kind}/{name}" for name in _names(path, before, word[len(kind) + 1 :])]
    if command == "logs":
        return _names("api/v1/{}pods", before, word)
    if places and command != "why":
        return _names(_path(places[0]), before, word)
    kinds = _JOBS if command == "why" else tuple(names[0] for names in _KINDS)
    end = "/" if command == "why" else ""
    return [f"{one}{end}" for one in kinds if one.startswith(word)]


def _places(words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    found, is_value = [], False
    for word in words:
        if not is_value and not word.startswith("-"):
            found.append(word)
        is_value = word in _OPTIONS or word in ("-l", "-o", "--output")
    return found


def _path(kind: str) -> str:
    return next(path for names, path in _KINDS.items() if kind.lower() in names)


def _names(path: str, words: Sequence[str], start: str) -> list[str]:
    import json

    from unisono.cli.slurm_programs.dispatch import connect

    options = {
        _OPTIONS[option]: value for option, value in itertools.pairwise(words) if option in _OPTIONS
    }
    api = connect(options)
    namespace = options.get("namespace") or api.namespace
    everywhere = "-A" in words or "--all-namespaces" in words
    filled = path.format("" if everywhere else f"namespaces/{namespace}/")
    answer = json.loads(api.call("GET", f"/{filled}?limit={_MOST_NAMES}"))
    names = [str(one["metadata"]["name"]) for one in answer.get("items") or ()]
    return [name for name in names if name.startswith(start)]
