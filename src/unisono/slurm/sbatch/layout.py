"""How a job's tasks and devices are laid out on its nodes: one pod per node (spec slurm §4).

What Slurm leaves to its scheduler is settled here, when the job is submitted, so that it is a gang
of known shape: how many nodes a number of tasks needs, and how many GPUs of a total each node gets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unisono.kinds.digits import whole_number
from unisono.slurm.labels import gres_of
from unisono.slurm.lite_typing import NamedTuple

UNAVAILABLE = "Requested node configuration is not available"
_SIZE = re.compile(r"([0-9]{1,15})(?:\.[0-9]+)?([KkMmGgTt]?)[Bb]?")
_COUNT = re.compile(r"([0-9]{1,9})([kKmM]?)")
_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}


class BadRequest(ValueError):
    """The request is invalid, or cannot be satisfied; in Slurm's words, and with a number."""

    def __init__(self, message: str, detail: str = "") -> None:
        """Take Slurm's words, and what they are about in this case."""
        super().__init__(message)
        self.detail = detail


class Site(NamedTuple):
    """What the administrator set for jobs that do not say."""

    mem_per_cpu_mib: int = 0
    mem_per_node_mib: int = 0
    mem_per_gpu_mib: int = 0
    cpus_per_gpu: int = 0
    packs_gpus: bool = False  # -N3 --gpus=8 is 6,1,1 as in Slurm, instead of 3,3,2


class NodeSize(NamedTuple):
    """What the nodes that a job may use have; 0: not known."""

    cpus: int = 0
    memory_mib: int = 0
    gpus: int = 0
    nodes: int = 0


class Group(NamedTuple):
    """Nodes of a job that get the same."""

    nodes: int
    tasks: int
    cpus: int
    memory_mib: int  # 0: none is asked for
    gpus: int


class Layout(NamedTuple):
    """The nodes of a job."""

    groups: tuple[Group, ...]
    tasks: int
    cpus_per_task: int
    gpu_type: str = ""
    devices: tuple[tuple[str, int], ...] = ()  # other generic resources, per node
    is_exclusive: bool = False

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return sum(group.nodes for group in self.groups)


def layout_of(options: Mapping[str, str], site: Site, size: NodeSize) -> Layout:
    """Return how a job lies on its nodes; raise BadRequest."""
    _check(options)
    least, most = nodes_asked(options)
    per_task = _number(options, "cpus-per-task") or 1
    kind, gpus_node, devices = _gres(options)
    total, kind = _typed(options, "gpus", kind)
    gpus_task, kind = _typed(options, "gpus-per-task", kind)
    tasks = _tasks(options, most, total, gpus_task)
    if gpus_task:
        total = total or tasks * gpus_task
    nodes = most or least or _fewest(tasks, per_task, total, gpus_node, options, size)
    if tasks and tasks < nodes and "ntasks" in options and least <= tasks:
        nodes = max(least, tasks)  # no node without a task, if the range allows it
    if "ntasks" not in options:
        tasks = max(tasks, nodes)
    shares = _gpu_shares(nodes, total, gpus_node, site, size, per_task=gpus_task)
    spread = _task_shares(tasks, nodes, shares, gpus_task, options)
    is_exclusive = "exclusive" in options and options["exclusive"] not in ("user", "mcs")
    groups: list[Group] = []
    for node_tasks, gpus in zip(spread, shares, strict=True):
        cpus = _cpus(options, site, size, node_tasks, per_task, gpus, is_exclusive=is_exclusive)
        memory = _memory(options, site, size, cpus, gpus)
        if is_exclusive and size.gpus:
            gpus = size.gpus
        one = Group(1, node_tasks, cpus, memory, gpus)
        if groups and groups[-1]._replace(nodes=1) == one:
            groups[-1] = groups[-1]._replace(nodes=groups[-1].nodes + 1)
        else:
            groups.append(one)
    _can_ever_fit(groups, size)
    return Layout(tuple(groups), tasks, per_task, kind, devices, is_exclusive)


def nodes_asked(options: Mapping[str, str]) -> tuple[int, int]:
    """Return the least and the most nodes of `-N`; 0 and 0 if it is not said."""
    text = options.get("nodes", "")
    if not text:
        return 0, 0
    numbers = [_COUNT.fullmatch(part.split(":")[0].strip()) for part in re.split(r"[-,]", text)]
    if not all(numbers):
        raise BadRequest(f'"{text}" is not a valid node count')
    found = [
        int(one[1]) * {"": 1, "k": 1024, "m": 1024 * 1024}[one[2].lower()]
        for one in numbers
        if one is not None
    ]
    if min(found) < 1 or max(found) < found[0]:
        raise BadRequest(f'"{text}" is not a valid node count')
    return min(found), max(found)


def mib_of(text: str, what: str = "mem") -> int:
    """Return an amount of memory in MiB.

    >>> mib_of("4G"), mib_of("100"), mib_of("0")
    (4096, 100, 0)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise BadRequest(f"Invalid --{what} specification")
    return max(int(int(found[1]) * _MIB[found[2].upper()]), 1 if int(found[1]) else 0)


def _check(options: Mapping[str, str]) -> None:
    if sum(name in options for name in ("mem", "mem-per-cpu", "mem-per-gpu")) > 1:
        raise BadRequest("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
    if "gpus-per-task" in options and "ntasks-per-gpu" in options:
        raise BadRequest(
            "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"
        )
    if "gpus-per-task" in options and "gpus" not in options and "ntasks" not in options:
        raise BadRequest(
            "Failed to validate job spec. --gpus-per-task used without either --gpus or "
            "-n/--ntasks is not allowed."
        )
    if "cpus-per-gpu" in options and "cpus-per-task" in options:
        raise BadRequest("--cpus-per-gpu is mutually exclusive with --cpus-per-task")


def _number(options: Mapping[str, str], name: str) -> int:
    text = options.get(name, "")
    if not text:
        return 0
    number = whole_number(text)
    if not number:
        raise BadRequest(f'Invalid numeric value "{text}" for --{name}.')
    return number


def _typed(options: Mapping[str, str], name: str, kind: str) -> tuple[int, str]:
    """Return a number of GPUs and their type: `4`, `a100:4`."""
    text = options.get(name, "")
    if not text:
        return 0, kind
    sort, _, count = text.rpartition(":")
    number = whole_number(count)
    if not number:
        raise BadRequest("Invalid generic resource (gres) specification")
    return number, sort.lower() or kind


def _gres(options: Mapping[str, str]) -> tuple[str, int, tuple[tuple[str, int], ...]]:
    """Return the type of GPUs, how many a node gets, and other devices of a node."""
    kind, gpus = "", 0
    others: dict[str, int] = {}
    try:
        listed = gres_of(options.get("gres", "").removeprefix("gres:"))
    except ValueError:
        raise BadRequest("Invalid generic resource (gres) specification") from None
    for name, sort, count in listed:
        if name == "gpu":
            kind, gpus = sort or kind, gpus + count
        else:
            others[name] = others.get(name, 0) + count
    per_node, kind = _typed(options, "gpus-per-node", kind)
    return kind, per_node or gpus, tuple(sorted(others.items()))


def _tasks(options: Mapping[str, str], nodes: int, gpus: int, gpus_task: int) -> int:
    if "ntasks" in options:
        return _number(options, "ntasks")
    if "ntasks-per-node" in options and nodes:
        return _number(options, "ntasks-per-node") * nodes
    if "ntasks-per-gpu" in options and gpus:
        return _number(options, "ntasks-per-gpu") * gpus
    if gpus_task and gpus:
        return max(1, gpus // gpus_task)
    return nodes or 1


def _fewest(
    tasks: int,
    per_task: int,
    gpus: int,
    gpus_node: int,
    options: Mapping[str, str],
    size: NodeSize,
) -> int:
    """Return the fewest nodes that hold so many tasks and GPUs."""
    wanted = [1]
    per_node = _number(options, "ntasks-per-node")
    if per_node:
        wanted.append(-(-tasks // per_node))
    if size.cpus:
        fit = size.cpus // per_task
        if not fit:
            detail = f"a task needs {per_task} CPUs, and the largest node has {size.cpus}"
            raise BadRequest(UNAVAILABLE, detail)
        wanted.append(-(-tasks // fit))
    if gpus and size.gpus:
        wanted.append(-(-gpus // size.gpus))
    return max(wanted)


def _gpu_shares(
    nodes: int, total: int, per_node: int, site: Site, size: NodeSize, *, per_task: int
) -> list[int]:
    """Return how many GPUs each node gets."""
    if not total:
        return [per_node] * nodes
    if total < nodes:
        raise BadRequest(UNAVAILABLE, f"{total} GPUs are too few for {nodes} nodes")
    most = size.gpus or total
    if total > most * nodes:
        detail = f"{total} GPUs on {nodes} nodes, and the largest node has {most}"
        raise BadRequest(UNAVAILABLE, detail)
    if site.packs_gpus or per_task:
        # As Slurm does: a node is filled up, but every node gets at least one (of a task's).
        least = per_task or 1
        shares: list[int] = []
        for place in range(nodes):
            left = total - sum(shares) - least * (nodes - place - 1)
            full = most - most % least
            shares.append(min(full, left))
        return shares
    small, more = divmod(total, nodes)
    return [small + 1] * more + [small] * (nodes - more)


def _task_shares(
    tasks: int, nodes: int, gpus: list[int], gpus_task: int, options: Mapping[str, str]
) -> list[int]:
    """Return how many tasks each node gets; the first ones get more."""
    if gpus_task and sum(gpus) == tasks * gpus_task:
        return [share // gpus_task for share in gpus]
    if "ntasks-per-gpu" in options and any(gpus):
        each = _number(options, "ntasks-per-gpu")
        return [share * each for share in gpus]
    most = _number(options, "ntasks-per-node")
    if most and most * nodes < tasks:
        detail = f"{tasks} tasks on {nodes} nodes, with {most} tasks on each at most"
        raise BadRequest(UNAVAILABLE, detail)
    small, more = divmod(tasks, nodes)
    return [small + 1] * more + [small] * (nodes - more)


def _cpus(
    options: Mapping[str, str],
    site: Site,
    size: NodeSize,
    tasks: int,
    per_task: int,
    gpus: int,
    *,
    is_exclusive: bool,
) -> int:
    each = _number(options, "cpus-per-gpu") or (
        site.cpus_per_gpu if "cpus-per-task" not in options else 0
    )
    cpus = max(tasks * per_task, each * gpus, _number(options, "mincpus"), 1)
    return size.cpus if is_exclusive and size.cpus else cpus


def _memory(options: Mapping[str, str], site: Site, size: NodeSize, cpus: int, gpus: int) -> int:
    """Return the memory per node; the site's default where the job requests none."""
    if "mem" in options:
        return mib_of(options["mem"]) or size.memory_mib
    if "mem-per-cpu" in options:
        return (mib_of(options["mem-per-cpu"], "mem-per-cpu") * cpus) or size.memory_mib
    if "mem-per-gpu" in options:
        return mib_of(options["mem-per-gpu"], "mem-per-gpu") * gpus
    if site.mem_per_cpu_mib:
        return site.mem_per_cpu_mib * cpus
    if site.mem_per_gpu_mib and gpus:
        return site.mem_per_gpu_mib * gpus
    # Slurm would take the whole node's memory, so that one job runs on it; we take none.
    return site.mem_per_node_mib


def _can_ever_fit(groups: list[Group], size: NodeSize) -> None:
    for group in groups:
        for what, wanted, largest in (
            ("CPUs", group.cpus, size.cpus),
            ("MiB of memory", group.memory_mib, size.memory_mib),
            ("GPUs", group.gpus, size.gpus),
        ):
            is_known = largest or (what == "GPUs" and size.cpus)
            if is_known and wanted > largest:
                detail = f"a node needs {wanted} {what}, and the largest has {largest}"
                raise BadRequest(UNAVAILABLE, detail)
