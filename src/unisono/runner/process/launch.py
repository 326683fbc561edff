"""What it takes to start a container: the command and everything around it, as one value.

Pure: the same pod in the same surroundings gives the same launch. Where the machine has no
namespaces for us (tier 0), paths and names are rewritten; with them (tier 1), a container sees its
volumes, its hostname and its hosts file as it expects them. Spec jobs §8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from unisono.control.actions import Json
from unisono.kinds.digits import is_digits
from unisono.kinds.quantity import Quantity
from unisono.runner.addresses import Host, hostname_of, hosts_text, name_table, own_names
from unisono.runner.process.allocations import (
    ENDPOINTS,
    PORT_VARIABLES,
    Held,
    Ports,
    attempt_of,
    device_variables,
    gang_of,
    written_ports,
)
from unisono.runner.process.checkpoints import checkpoint_contract
from unisono.runner.process.environment import Environment, environment, expand
from unisono.runner.process.mounts import (
    Mount,
    Places,
    Rewriting,
    Volume,
    mounts_of,
    path_rewriting,
    volumes_of,
)
from unisono.runner.process.references import References
from unisono.runner.process.system_users import SystemUser

Tier = Literal[0, 1]

_PROCESSES = "PET_NPROC_PER_NODE"
# How Open MPI 4 and 5 are told with which program they reach other hosts.
_REMOTE_SHELLS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
_LOG_BYTES = 10 << 20
_LOG_FILES = 5
_MESSAGE_PATH = "/dev/termination-log"
_TOOLS = "/unisono/tools"  # where containers that have their own view of files see our programs


class Alias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An image as this machine provides it: programs of its own instead of a file system."""

    image: str  # a pattern, as in `*/pytorch*`
    path: str = ""  # goes before PATH: the bin directory of a virtual environment
    entrypoint: tuple[str, ...] = ()
    working_dir: str = ""
    env: Mapping[str, str] = {}


class HostSetup(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine offers to every container."""

    tier: Tier
    pods: str  # directory of running pods
    claims: str  # directory of claims
    logs: str  # directory of logs
    checkpoints: str = ""  # directory of what jobs keep from one attempt to the next
    env: Mapping[str, str] = {}  # PATH, HOME and the like
    host_paths: tuple[str, ...] = ()
    aliases: tuple[Alias, ...] = ()
    tools: str = ""  # a directory of programs of ours that go before all others
    programs: tuple[str, ...] = ()  # directories that those need to run
    # What containers do not see of this machine, with the entries of each that they do.
    hidden: Mapping[str, tuple[str, ...]] = {}

    def directory(self, pod: Json) -> str:
        """Return the directory of a pod."""
        return f"{self.pods}/{pod['metadata']['uid']}"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a container, as `shim` reads it."""

    namespace: str
    pod: str
    uid: str
    container: str
    run: int  # 0 for the first
    argv: tuple[str, ...]  # none: it waits until it is stopped
    env: Mapping[str, str]
    cwd: str
    tier: Tier
    directory: str  # of this container: state and exit
    log: str
    hostname: str
    notes: tuple[str, ...] = ()  # first lines of the log
    hosts: str = ""  # a file to be seen as /etc/hosts
    mounts: tuple[Mount, ...] = ()
    message_path: str = _MESSAGE_PATH
    says_log_on_error: bool = False
    memory_bytes: int = 0  # more than this, and it is killed; 0: any
    exec_names: tuple[str, ...] = ()  # names of its exec socket
    owner: tuple[int, int] | None = None  # system user and group; none: ours
    hidden: Mapping[str, tuple[str, ...]] = {}
    log_bytes: int = _LOG_BYTES
    log_files: int = _LOG_FILES


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be remembered of a run as long as its pod lives; nothing in it is secret."""

    namespace: str
    pod: str
    uid: str
    container: str
    run: int
    node: str
    address: str
    devices: Mapping[str, tuple[int, ...]] = {}
    given_ports: Mapping[str, int] = {}
    held_ports: Mapping[int, str] = {}
    owner: tuple[int, int] | None = None  # system user and group; none: ours


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything to do before and at a start."""

    launch: Launch
    record: Record
    volumes: Sequence[Volume]
    mounts: Sequence[Mount]
    hosts_text: str


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a launch depends on besides the pod itself."""

    host_setup: HostSetup
    references: References
    others: Sequence[Host]  # names of neighbours
    held: Held  # devices
    ports: Ports
    account: SystemUser | None = None  # the system user of the pod; none: ours


def plan(pod: Json, container: Json, run: int, launch_context: LaunchContext) -> Plan:
    """Return how to start a container; raise NotYet if that cannot be now."""
    host_setup, references = launch_context.host_setup, launch_context.references
    metadata = pod["metadata"]
    directory = host_setup.directory(pod)
    address = references.where.pod_ip
    alias = _alias(container, host_setup)
    given_ports: dict[str, int] = {}
    replaced: list[str] = []

    def instead(name: str, value: str) -> str:
        return _instead(name, value, pod, launch_context, given_ports, replaced)

    keeps = checkpoint_contract(
        pod, container["name"], run, references.view, own=directory, kept=host_setup.checkpoints
    )
    env = environment(
        container, references, {**_given(pod, alias, launch_context), **keeps.env}, instead
    )
    argv, notes = _argv(container, alias, env)
    held_ports = _held_ports(pod, argv, launch_context, replaced)
    places = Places(pod=directory, claims=host_setup.claims, host_paths=host_setup.host_paths)
    volumes = volumes_of(pod, places, references)
    mounts = [*keeps.mounts, *mounts_of(container, pod, volumes, env.written)]
    cwd = container.get("workingDir") or (alias.working_dir if alias else "") or "/"
    whole = env.whole
    if host_setup.tier == 0:
        put = _rewriting(pod, address, mounts, launch_context.others)
        argv, cwd = [put(word) for word in argv], put(cwd)
        kept = {name: put(env.given[name]) for name in keeps.env if name in env.given}
        written = {name: put(value) for name, value in env.written.items()}
        whole = {**env.given, **kept, **written}
    namespace = metadata.get("namespace", "")
    name = str(container["name"])
    limit = ((container.get("resources") or {}).get("limits") or {}).get("memory", 0)
    launch = Launch(
        namespace=namespace,
        pod=metadata["name"],
        uid=metadata["uid"],
        container=name,
        run=run,
        argv=tuple(argv),
        env=whole,
        cwd=cwd,
        tier=host_setup.tier,
        directory=f"{directory}/containers/{name}",
        log=f"{host_setup.logs}/{namespace}/{metadata['uid']}/{name}.log",
        hostname=hostname_of(pod),
        notes=notes,
        hosts=f"{directory}/hosts" if host_setup.tier else "",
        mounts=(*_programs(whole), *_tools(launch_context), *mounts) if host_setup.tier else (),
        message_path=container.get("terminationMessagePath") or _MESSAGE_PATH,
        says_log_on_error=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
        memory_bytes=Quantity.from_raw(limit).units,
        exec_names=_exec_names(pod, name, address),
        owner=(launch_context.account.uid, launch_context.account.gid)
        if launch_context.account
        else None,
        hidden=host_setup.hidden,
    )
    record = Record(
        namespace=namespace,
        pod=metadata["name"],
        uid=metadata["uid"],
        container=name,
        run=run,
        node=pod["spec"].get("nodeName", ""),
        address=address,
        devices=launch_context.held,
        given_ports=given_ports,
        held_ports=held_ports,
        owner=launch.owner,
    )
    text = hosts_text(pod, address, launch_context.others)
    return Plan(launch, record, (*volumes.values(), *keeps.volumes), mounts, text)


def _given(pod: Json, alias: Alias | None, launch_context: LaunchContext) -> dict[str, str]:
    """Return what the machine says in every environment."""
    env = {
        **launch_context.host_setup.env,
        "HOSTNAME": hostname_of(pod),
        **device_variables(launch_context.held),
    }
    if alias is not None:
        env |= alias.env
        if alias.path:
            env["PATH"] = f"{alias.path}:{env.get('PATH', '')}".rstrip(":")
    if account := launch_context.account:
        env |= {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}
    if launch_context.host_setup.tools:
        tools = _TOOLS if launch_context.host_setup.tier else launch_context.host_setup.tools
        env["UNISONO_TOOLS"] = tools
        env["PATH"] = f"{tools}:{env.get('PATH', '')}".rstrip(":")
        env |= dict.fromkeys(_REMOTE_SHELLS, f"{tools}/ssh")
    # Leftover processes of a pod are found by this variable.
    env["UNISONO_POD_UID"] = pod["metadata"]["uid"]
    return env


def _instead(
    name: str,
    value: str,
    pod: Json,
    launch_context: LaunchContext,
    given: dict[str, int],
    replaced: list[str],
) -> str:
    """Return what a variable says here: a port of the gang's own, devices that are there."""
    if name == _PROCESSES and value in ("auto", "gpu"):
        count = sum(map(len, launch_context.held.values()))
        return str(count) if count else value
    if name in PORT_VARIABLES and is_digits(value):
        gang = f"{gang_of(pod)}#{attempt_of(pod)}:{value}"
        given[gang] = launch_context.ports.of(gang, pod["metadata"]["uid"])
        replaced.append(value)
        return str(given[gang])
    if name in ENDPOINTS and given and value.endswith(f":{replaced[-1]}"):
        return f"{value.rpartition(':')[0]}:{next(iter(given.values()))}"
    return value


def _argv(
    container: Json, alias: Alias | None, env: Environment
) -> tuple[list[str], tuple[str, ...]]:
    """Return the command, and what the log is to say about it first."""
    command = container.get("command") or (alias.entrypoint if alias else ())
    words = [*command, *(container.get("args") or ())]
    if words and is_sshd(words[0]):
        return [], ("unisono: sshd is not started: ssh reaches the pod without it",)
    if words:
        return [expand(str(word), env.written) for word in words], ()
    image = container.get("image", "")
    return [], (
        f"unisono: image {image} has no alias on this machine, and the container has no command; "
        "it waits until it is stopped",
    )


def is_sshd(program: str) -> bool:
    """Say whether a program is sshd: `ssh` between pods works without it."""
    return program.rpartition("/")[2] == "sshd"


def _alias(container: Json, host_setup: HostSetup) -> Alias | None:
    image = str(container.get("image", ""))
    return next((one for one in host_setup.aliases if fnmatchcase(image, one.image)), None)


def _exec_names(pod: Json, container: str, address: str) -> tuple[str, ...]:
    """Return the names of an exec socket; the first container also has the bare address."""
    own = f"{address}/{container}"
    is_first = pod["spec"]["containers"][0]["name"] == container
    return (own, address) if is_first else (own,)


def _programs(env: Mapping[str, str]) -> list[Mount]:
    """Return what a container needs of the machine's /tmp although it has its own: programs."""
    found = [entry.rpartition("/")[0] for entry in env.get("PATH", "").split(":")]
    # A batch script runs where it was submitted, and its output is to be found there.
    found.append(env.get("SLURM_SUBMIT_DIR", ""))
    kept = [path for path in dict.fromkeys(found) if path.startswith("/tmp/")]
    return [Mount(source=path, target=path, as_owner=True) for path in kept]


def _tools(launch_context: LaunchContext) -> list[Mount]:
    """Return our own programs, which may lie where containers do not see them."""
    host_setup, is_others = launch_context.host_setup, launch_context.account is not None
    found = [
        Mount(source=path, target=path, read_only=is_others)
        for path in host_setup.programs
        if is_others or path.startswith("/tmp/")
    ]
    if host_setup.tools:
        found.append(Mount(source=host_setup.tools, target=_TOOLS, read_only=True))
    return found


def _held_ports(
    pod: Json, argv: Sequence[str], launch_context: LaunchContext, replaced: Sequence[str]
) -> dict[int, str]:
    hosts = [name for host in launch_context.others for name in host.names if "." in name]
    hosts += [name for name in own_names(pod) if "." in name]
    wanted = written_ports(pod, argv, hosts, replaced[-1] if replaced else "")
    gang = gang_of(pod)
    launch_context.ports.hold(gang, pod["metadata"]["uid"], sorted(wanted))
    return dict.fromkeys(sorted(wanted), gang)


def _rewriting(
    pod: Json, address: str, mounts: Sequence[Mount], others: Sequence[Host]
) -> _Rewritings:
    table = name_table(pod, address, others)
    return _Rewritings((path_rewriting(mounts), Rewriting(table, inside=r"\w.-")))


@dataclass(frozen=True, slots=True)
class _Rewritings:
    parts: Sequence[Rewriting]

    def __call__(self, text: str) -> str:
        for part in self.parts:
            text = part(text)
        return text
