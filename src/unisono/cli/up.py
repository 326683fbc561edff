"""`unisono up`: the embedded cluster in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from unisono.cli.help_format import HelpFormat
from unisono.cli.web_addresses import url
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.digits import whole_number
from unisono.runtime.instance import POD_UIDS, Instance, InstanceError, default_directory
from unisono.runtime.policy_file import Chosen, chosen_policy, path_of

if TYPE_CHECKING:
    from unisono.apiserver.api import Api

# What runs beside the cluster, in the same process, until that is told to stop.
Beside: TypeAlias = "Callable[[Api], Coroutine[Any, Any, None]]"

_FIRST_NODES = "2xg6e.48xlarge"
NO_NODES = ("none", "0")
_MOST_SPEED = 100_000
_TURN_SECONDS = 0.0005
_HIGHEST_UID = 2**31 - 1  # the kernel has one bit more; many programs do not
_LAST_PORT = 65_535

_EXAMPLES = """\
examples:
  unisono up
  unisono up --nodes 4xg6e.48xlarge,2xm6i.2xlarge
  unisono up --nodes '8x{gpu=8,cpu=96,memory=768Gi,rack=r1}' --data-dir /tmp/try
  unisono up --nodes nodes.yaml --port 6443
  unisono up --nodes 0 --pools pools.yaml

then, in another terminal:
  export KUBECONFIG=~/.unisono/default/kubeconfig
  kubectl get nodes
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    found = argparse.ArgumentParser(
        description="Run a cluster of your own: a Kubernetes API on this machine, driven by "
        "kubectl. Ctrl-C stops it; its state stays.",
        epilog=_EXAMPLES,
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    cluster = found.add_argument_group("cluster")
    pods = found.add_argument_group("pods")
    addresses = found.add_argument_group("addresses")
    users = found.add_argument_group("users")
    storage = found.add_argument_group("storage")
    storage.add_argument(
        "--data-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help="the folder of its state (default: $UNISONO_DATA_DIR, else ~/.unisono/default)",
    )
    addresses.add_argument(
        "--port",
        type=_port,
        default=None,
        metavar="P",
        help="the port of the API (default: that of the last start, else any free one)",
    )
    cluster.add_argument(
        "--nodes",
        default=None,
        metavar="SHAPE|FILE",
        help="nodes to add: COUNTxTYPE[@ZONE],…, COUNTx{gpu=8,cpu=96,…}, a file of Node "
        "manifests, or 0: quota alone decides until a node joins "
        f"(default at the first start: {_FIRST_NODES})",
    )
    cluster.add_argument(
        "--pools",
        type=Path,
        default=None,
        metavar="FILE",
        help="buy simulated machines from these NodePools; without --nodes, only these",
    )
    pods.add_argument(
        "--pods",
        choices=("simulated", "process"),
        default="simulated",
        help="simulated: pods take their time and do nothing; process: their commands run on this "
        "machine (default: simulated)",
    )
    pods.add_argument(
        "--speed",
        type=speed,
        default=1.0,
        metavar="X",
        help="simulated pods end X times as fast (default: 1)",
    )
    cluster.add_argument(
        "--policy",
        default=None,
        metavar="FILE",
        help="a Policy or a Kueue Configuration; kept for later starts until another one, or "
        "none, is given",
    )
    storage.add_argument(
        "--record",
        type=Path,
        default=None,
        metavar="DIR",
        help="record every decision in this folder, for `unisono replay`; the oldest are deleted",
    )
    addresses.add_argument(
        "--metrics-port",
        type=_metrics_port,
        default=None,
        metavar="P",
        help="the port of the metrics, for Prometheus; GPU metrics are one below, the web page is "
        "one above; or none (default: 9401 if free, none with --users)",
    )
    addresses.add_argument(
        "--gpu-metrics",
        choices=("lean", "default", "full"),
        default=None,
        help="metrics of each GPU: those of alerts and dashboards, those of a stock dcgm-exporter, "
        "or all (default: full, and lean from 2,000 GPUs on)",
    )
    addresses.add_argument(
        "--grafana",
        type=url,
        default=None,
        metavar="URL",
        help="the address of a Grafana with our dashboards; the web page links to its panels",
    )
    users.add_argument(
        "--users",
        type=Path,
        default=None,
        metavar="FILE",
        help="further users, with tokens and groups; roles then decide what each may do",
    )
    users.add_argument(
        "--pod-uids",
        type=_uids,
        default=POD_UIDS,
        metavar="FIRST-LAST",
        help="with --users and --pods process, as root: the system users that run pods, one for "
        f"each person without a uid in the users file (default: {POD_UIDS[0]}-{POD_UIDS[1]})",
    )
    addresses.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="HOST",
        help="the address of the API (default: 127.0.0.1; another one needs --users)",
    )
    storage.add_argument(
        "--fast-commit",
        action="store_true",
        help="do not wait for the disk: faster; survives kill -9, but not always a power cut",
    )
    return found


def speed(text: str) -> float:
    """Read how many times faster simulated pods live."""
    times = float(text)
    if not 0 < times <= _MOST_SPEED:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {_MOST_SPEED}")
    return times


def _port(text: str) -> int:
    number = whole_number(text, _LAST_PORT)
    if number is None:
        raise argparse.ArgumentTypeError(f"{text[:40]} is not a port, from 0 (any) to {_LAST_PORT}")
    return number


def _metrics_port(text: str) -> int:
    if text == "none":
        return 0
    number = whole_number(text, _LAST_PORT - 1)  # the web page is on the one above
    if number is None or number < 2:
        raise argparse.ArgumentTypeError(
            f"{text[:40]} is not a port from 2 to {_LAST_PORT - 1}, nor none"
        )
    return number


def _uids(text: str) -> tuple[int, int]:
    first, last = (whole_number(end) for end in text.partition("-")[::2])
    if first is None or last is None:
        raise argparse.ArgumentTypeError(f"{text[:40]} is not FIRST-LAST, as in 200000-265535")
    if not 0 < first <= last <= _HIGHEST_UID:
        raise argparse.ArgumentTypeError(
            f"{text}: must go up, from 1 (0 is root) to at most {_HIGHEST_UID}"
        )
    return first, last


def run(arguments: argparse.Namespace) -> int:
    """Run until told to stop."""
    return serve(arguments)


def serve(
    arguments: argparse.Namespace,
    objects: tuple[dict[str, Any], ...] = (),
    beside: Beside | None = None,
) -> int:
    """Run until told to stop, with objects that are applied at the start, and work beside it."""
    if arguments.listen not in ("127.0.0.1", "::1", "localhost") and arguments.users is None:
        message = f"{arguments.listen} can be reached by others; name them with --users FILE"
        raise InvalidManifest("--listen", message)
    if arguments.users is not None and arguments.pods == "process":
        _refuse_shared_user()
    # Absolute: process pods and their supervisors have other working directories.
    instance = Instance((arguments.data_dir or default_directory()).absolute())
    instance.prepare()
    lock = instance.lock()
    try:
        _refuse_taken_ports(arguments)
        with contextlib.suppress(InstanceError):  # of a full disk, which is told of below
            # The address of a process that was killed is no address of this one.
            instance.remember(pid=os.getpid(), port=instance.remembered().get("port"))
            instance.socket.unlink(missing_ok=True)
        policy = chosen_policy(instance, path_of(arguments.policy) if arguments.policy else None)
        is_first = not instance.database.exists()
        shape = "none" if arguments.nodes is None and arguments.pools else arguments.nodes
        if arguments.pools is not None:
            objects = (*pools_of_file(arguments.pools), *objects)
        _serve(instance, arguments, _nodes(shape, is_first=is_first), policy, objects, beside)
    finally:
        os.close(lock)
    return 0


def _refuse_taken_ports(arguments: argparse.Namespace) -> None:
    """Refuse a metrics port at once, not when the cluster already answers.

    One of its neighbours may be the one that is taken, so all three are named.
    """
    from unisono.net.listener import CannotListen, bound

    port: int | None = arguments.metrics_port
    if not port:
        return
    served = {port - 1: "metrics of GPUs", port: "metrics", port + 1: "the web page"}
    first, last = min(served), max(served)
    if arguments.port in served:
        message = f"{port} takes {first} to {last}, and --port is {arguments.port}: choose another"
        raise InvalidManifest("--metrics-port", message)
    for number, what in served.items():
        try:
            bound("127.0.0.1", number).close()
        except CannotListen as error:
            raise CannotListen(
                f"--metrics-port {port}: {error}, and {what} would be there; {first} to {last} "
                "must be free: choose another port, or leave --metrics-port out"
            ) from error


def _refuse_shared_user() -> None:
    """Several people's commands as one system user would all be that user's."""
    instead = "leave --users out, or choose --pods simulated"
    if os.geteuid() != 0:
        message = (
            "process with --users runs commands of several people, and each needs a system user "
            f"of their own, which only root can give: run this as root, {instead}"
        )
        raise InvalidManifest("--pods", message)
    from unisono.runner.process.machine import has_sandbox

    if not has_sandbox():
        message = (
            "process with --users keeps people apart by namespaces, which this machine does not "
            "allow: run it where root may make them (not in a container without CAP_SYS_ADMIN), "
            f"{instead}"
        )
        raise InvalidManifest("--pods", message)


def _nodes(chosen: str | None, *, is_first: bool) -> Iterator[dict[str, Any]]:
    """Return the nodes that were asked for; a cluster's first start brings some along.

    One by one, because a thousand manifests that are stored need not be held as well.
    """
    from unisono.apiserver.times import timestamp
    from unisono.provision.catalog.nodes import BadShape, nodes_of, parse_shape
    from unisono.runtime.clock import seconds_now

    shape = chosen if chosen is not None else _FIRST_NODES if is_first else "none"
    if shape in NO_NODES:
        return iter(())
    path = Path(shape)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        return iter(_nodes_of_file(path))
    try:
        return nodes_of(parse_shape(shape), now=timestamp(seconds_now()))
    except BadShape as error:
        raise InvalidManifest("--nodes", str(error)) from error


def _nodes_of_file(path: Path) -> list[dict[str, Any]]:
    from unisono.kinds.documents import read_documents

    read = read_documents(str(path), path.read_bytes())
    for problem in read.problems:
        raise InvalidManifest("--nodes", problem.line())
    others = [document.kind for document in read.documents if document.kind != "Node"]
    if others:
        raise InvalidManifest("--nodes", f"{path} holds a {others[0]}; only Nodes belong there")
    return [dict(document.raw) for document in read.documents]


def pools_of_file(path: Path) -> tuple[dict[str, Any], ...]:
    """Read pools, and what belongs to them."""
    from unisono.kinds.documents import read_documents

    try:
        read = read_documents(str(path), path.read_bytes())
    except OSError as error:
        raise InvalidManifest("--pools", f"cannot read {path}: {error.strerror}") from error
    for problem in read.problems:
        raise InvalidManifest("--pools", problem.line())
    known = ("NodePool", "NodeOverlay", "EC2NodeClass", "ConfigMap")
    others = [document.kind for document in read.documents if document.kind not in known]
    if others:
        raise InvalidManifest("--pools", f"{path} holds a {others[0]}; only pools belong there")
    return tuple(dict(document.raw) for document in read.documents)


def _serve(
    instance: Instance,
    arguments: argparse.Namespace,
    nodes: Iterator[dict[str, Any]],
    policy: Chosen | None,
    objects: tuple[dict[str, Any], ...],
    beside: Beside | None,
) -> None:
    import uvloop

    # The thread that writes to the disk has little to do between waits; with Python's five
    # milliseconds it would wait longer for its turn than for the disk.
    sys.setswitchinterval(_TURN_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_stopped(instance, arguments, nodes, policy, objects, beside))


async def _until_stopped(
    instance: Instance,
    arguments: argparse.Namespace,
    nodes: Iterator[dict[str, Any]],
    policy: Chosen | None,
    objects: tuple[dict[str, Any], ...],
    beside: Beside | None,
) -> None:
    from unisono.kube.clock import guarded
    from unisono.runtime.embedded.server import Choices, answering

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    choices = Choices(
        # Without machines to come, `--nodes 0` means what it says: quota alone decides.
        needs_nodes=arguments.nodes not in NO_NODES or arguments.pools is not None,
        port=arguments.port,
        listen=arguments.listen,
        users=arguments.users,
        pods=arguments.pods,
        speed=arguments.speed,
        is_power_safe=not arguments.fast_commit,
        policy=policy,
        objects=objects,
        pod_uids=arguments.pod_uids,
        record=arguments.record,
        metrics_port=arguments.metrics_port,
        gpu_metrics=arguments.gpu_metrics,
        grafana=arguments.grafana or "",
        private=tuple(path for path in (arguments.users, arguments.record) if path is not None),
    )
    async with answering(instance, choices, nodes) as there:
        taken = int(there.url.rpartition(":")[2])
        instance.remember(pid=os.getpid(), url=there.url, port=taken)
        print(f"api         {there.url}")
        print(f"data        {instance.directory}")
        print(f"nodes       {there.api.store.count('/nodes')}")
        # From here on it answers; controllers are loaded now.
        print(f"kubeconfig  export KUBECONFIG={instance.kubeconfig}", flush=True)
        # In a thread, so that requests are answered meanwhile.
        module = "unisono.runtime.embedded.services"
        await loop.run_in_executor(None, importlib.import_module, module)
        from unisono.runtime.embedded.services import services

        async with services(there, instance, choices) as pages:
            for name, address in pages.items():
                print(f"{name:<10}  {address}")
            print("ready", flush=True)
            if beside is None:
                await stop.wait()
            else:
                await guarded(beside(there.api), stop.wait())
            print("stopping", file=sys.stderr)
    with contextlib.suppress(InstanceError):  # of a full disk; then the next start takes any port
        instance.remember(port=taken)
