"""What process pods share on this machine: addresses, ports, devices, names, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.view import View
from unisono.kinds.core.gpu_parts import device_of
from unisono.runner.addresses import Addresses, Host, hosts_text, neighbours
from unisono.runner.containers import RunningRun, RunState
from unisono.runner.process.allocations import Devices, Ports
from unisono.runner.process.launch import HostSetup, LaunchContext, Plan, Record, plan
from unisono.runner.process.mounts import Places, Volume, volumes_of
from unisono.runner.process.probes import Check
from unisono.runner.process.references import CannotStartYet, References
from unisono.runner.process.system_users import SystemUser, SystemUsers
from unisono.runner.status import PodAddress, host_ip


class Processes(Protocol):
    """The machine as the kubelet uses it."""

    @property
    def host_setup(self) -> HostSetup:
        """What it offers."""

    def look(self, uid: str, container: str) -> RunState | None:
        """Return how the last run of a container stands."""

    def records(self) -> Iterator[Record]:
        """Yield what every known run was given."""

    def start(self, plan: Plan) -> RunningRun:
        """Start a run."""

    def stop(self, uid: str, container: str, first: Sequence[str] = ()) -> None:
        """Ask a container to stop, once; before that, a command may run in it."""

    def ask(self, uid: str, container: str, which: str, check: Check) -> None:
        """Ask a container something."""

    def answer(self, uid: str, container: str, which: str) -> bool | None:
        """Return an answer that came, once; None if none has come."""

    def progress(self, uid: str, container: str) -> tuple[str, float] | None:
        """Return the last line in which a container said how far it is, and when."""

    def kill(self, uid: str, container: str) -> None:
        """End a container and everything that came of it."""

    def refresh(self, volumes: list[Volume], owner: tuple[int, int] | None = None) -> None:
        """Bring files of volumes up to date; they belong to a system user, or to us."""

    def write_hosts(self, uid: str, text: str) -> None:
        """Write the hosts file of a pod."""

    def forget(self, uid: str) -> None:
        """End everything of a pod and remove what it had."""


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Addresses, ports, devices and users of pods, recovered from statuses and records."""

    machine: Processes
    addresses: Addresses
    ports: Ports
    devices: Devices = field(default_factory=Devices)
    system_users: SystemUsers | None = None  # none: every pod runs as ourselves

    def learn(self, view: View) -> None:
        """Recover what an earlier process assigned; end runs whose pods are gone."""
        pods = {pod["metadata"]["uid"]: pod for pod in view.all(names.POD)}
        for uid, pod in pods.items():
            if address := (pod.get("status") or {}).get("podIP"):
                self.addresses.learn(uid, address)
        for record in list(self.machine.records()):
            if record.uid not in pods:
                self.machine.forget(record.uid)
                continue
            self.addresses.learn(record.uid, record.address)
            self.devices.learn(record.node, record.uid, record.container, record.devices)
            self.ports.learn(record.uid, record.given_ports, record.held_ports)

    def release(self, uid: str) -> None:
        """Take back what a pod had that has ended; its address stays until it is gone."""
        self.devices.release(uid)
        self.ports.release(uid)

    def start(self, pod: Json, container: Json, run: int, view: View) -> RunningRun:
        """Start a run; raise NotYet if something is missing."""
        node = view.get(names.NODE, pod["spec"]["nodeName"])
        launch_context = LaunchContext(
            self.machine.host_setup,
            References(pod, view, self.where(pod, view)),
            list(self._neighbours(view, pod["metadata"].get("namespace", ""))),
            self.devices.of(
                node,
                pod["metadata"]["uid"],
                container,
                device_of(pod["metadata"].get("annotations") or {}),
            ),
            self.ports,
            self._system_user(pod),
        )
        return self.machine.start(plan(pod, container, run, launch_context))

    def _system_user(self, pod: Json) -> SystemUser | None:
        return self.system_users.of(pod) if self.system_users is not None else None

    def where(self, pod: Json, view: View) -> PodAddress:
        """Return where a pod is."""
        node = view.get(names.NODE, pod["spec"]["nodeName"])
        return PodAddress(self.addresses.of(pod["metadata"]["uid"]), host_ip(node))

    def refresh(self, pod: Json, view: View) -> None:
        """Bring files of config maps and secrets up to date; what is gone stays as it was."""
        if not pod["spec"].get("volumes"):
            return
        host_setup = self.machine.host_setup
        places = Places(
            pod=host_setup.directory(pod),
            claims=host_setup.claims,
            host_paths=host_setup.host_paths,
        )
        try:
            volumes = volumes_of(pod, places, References(pod, view, self.where(pod, view)))
        except CannotStartYet:
            return
        account = self._system_user(pod)
        owner = (account.uid, account.gid) if account is not None else None
        self.machine.refresh([one for one in volumes.values() if one.files is not None], owner)

    def write_names(self, namespace: str, pods: list[Json], view: View) -> None:
        """Write the hosts files of a namespace's pods."""
        if self.machine.host_setup.tier:
            others = list(self._neighbours(view, namespace))
            for pod in pods:
                uid = pod["metadata"]["uid"]
                self.machine.write_hosts(uid, hosts_text(pod, self.addresses.of(uid), others))

    def _neighbours(self, view: View, namespace: str) -> Iterator[Host]:
        return neighbours(
            view,
            namespace,
            lambda pod: self.addresses.expected(pod["metadata"]["uid"]),
            hides_unready=self.machine.host_setup.tier > 0,
        )
