"""Process pods put together: the machine and its kubelet, ready to be given to a driver.

runner = process_runner(directory, logs, now=clock.now, env=…, addresses=…)
driver = live.driver((*controllers, runner.kubelet, runner.checkpoints), lanes)
runner.begin(lambda namespace, pod: driver.want(runner.kubelet.name, Key(namespace, pod)))
…
await runner.close()          # or not: containers outlive us, and are found again
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unisono.runner.addresses import Addresses
from unisono.runner.process.allocations import Ports
from unisono.runner.process.checkpoints import CheckpointCleaner
from unisono.runner.process.kubelet import KubeletOptions, ProcessKubelet
from unisono.runner.process.launch import Alias, HostSetup, Tier
from unisono.runner.process.machine import Machine, has_sandbox, is_port_free
from unisono.runner.process.node_resources import NodeResources
from unisono.runner.process.remote_shell import install
from unisono.runner.process.system_users import SystemUsers

# Variables of our own environment that every container gets.
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
# Open MPI refuses to run as root unless told twice; in a container, root is the usual user.
_ROOT_IS_FINE = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")


@dataclass(frozen=True, slots=True)
class ProcessRunner:
    """Everything that runs pods as processes."""

    machine: Machine
    kubelet: ProcessKubelet
    checkpoints: CheckpointCleaner

    def begin(self, on_change: Callable[[str, str], None]) -> int:
        """Find the containers that an earlier process started; return how many still run.

        `on_change` gets namespace and name of a pod when one of its containers ends.
        """
        self.machine.on_change = on_change
        return self.machine.recover()

    async def close(self, grace_s: float = 5.0) -> None:
        """Stop every container."""
        await self.machine.close(grace_s)


def _own_programs() -> tuple[str, ...]:
    """Return where this interpreter and this package are, unless every container sees them."""
    package = str(Path(__file__).resolve().parents[3])
    found = dict.fromkeys((sys.prefix, sys.base_prefix, package))
    return tuple(path for path in found if path not in ("/", "/usr", "/usr/local"))


def process_runner(
    directory: Path,
    logs: Path,
    *,
    now: Callable[[], float],
    env: Mapping[str, str],
    addresses: Addresses,
    options: KubeletOptions = KubeletOptions(),  # noqa: B008  (frozen)
    api: tuple[str, int] | None = None,
    host_paths: Sequence[str] = (),
    aliases: Sequence[Alias] = (),
    tier: Tier | None = None,
    is_root: bool = False,
    hidden: Mapping[str, tuple[str, ...]] | None = None,
    system_users: SystemUsers | None = None,
) -> ProcessRunner:
    """Make a runner that keeps its pods in a directory; without a tier, the best there is.

    `env` is our own environment, `api` where pods find the API, `is_root` whether we are. `hidden`
    are paths that pods do not see, with the entries of each that they do; `system_users` the user
    of each pod.
    """
    given = {name: env[name] for name in _PASSED_ON if name in env}
    if is_root and system_users is None:
        given |= dict.fromkeys(_ROOT_IS_FINE, "1")
    if api is not None:
        given |= {"KUBERNETES_SERVICE_HOST": api[0], "KUBERNETES_SERVICE_PORT": str(api[1])}
    best: Tier = 1 if has_sandbox() else 0
    tools = directory / "tools" / "bin"
    install(tools)
    host_setup = HostSetup(
        tier=tier if tier is not None else best,
        pods=str(directory / "pods"),
        claims=str(directory / "claims"),
        checkpoints=str(directory / "checkpoints"),
        logs=str(logs),
        env=given,
        host_paths=tuple(host_paths),
        aliases=tuple(aliases),
        tools=str(tools),
        programs=_own_programs(),
        hidden=hidden or {},
    )
    machine = Machine(host_setup, now, is_shared=system_users is not None)
    node_resources = NodeResources(
        machine, addresses, Ports(is_port_free), system_users=system_users
    )
    cleaner = CheckpointCleaner(directory / "checkpoints")
    return ProcessRunner(machine, ProcessKubelet(node_resources, options), cleaner)
