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
from unisono.runner.process.accounts import Account
from unisono.runner.process.checkpoints import offer
from unisono.runner.process.devices import Held, variables
from unisono.runner.process.environment import Environment, environment
from unisono.runner.process.expand import expand
from unisono.runner.process.hosts import Host, hostname_of, hosts_text, name_table, own_names
from unisono.runner.process.mounts import (
    Mount,
    Places,
    Rewriting,
    Volume,
    mounts_of,
    path_rewriting,
    volumes_of,
)
from unisono.runner.process.ports import (
    ENDPOINTS,
    VARIABLES,
    Ports,
    attempt_of,
    gang_of,
    written_ports,
)
from unisono.runner.process.sources import Sources

Tier = Literal[0, 1]

_PROCESSES = "PET_NPROC_PER_NODE"
# How Open MPI 4 and 5 are told with which program they reach other hosts.
_REMOTE_SHELLS = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent")
_LOG_BYTES = 10 << 20
_LOG_FILES = 5
_MESSAGE_PATH = "/dev/termination-log"
_TOOLS = "/unisono/tools"  # where containers that have their own view of files see our programs


class Alias(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands for an image here: programs of this machine instead of a file system."""

    image: str  # a pattern, as in `*/pytorch*`
    path: str = ""  # goes before PATH: the bin directory of a virtual environment
    entrypoint: tuple[str, ...] = ()
    working_dir: str = ""
    env: Mapping[str, str] = {}


class Ground(msgspec.Struct, frozen=True, kw_only=True):
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
    errands: tuple[str, ...] = ()  # names under which others have commands run in it
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
class Around:
    """What a launch depends on besides the pod itself."""

    ground: Ground
    sources: Sources
    others: Sequence[Host]  # names of neighbours
    held: Held  # devices
    ports: Ports
    account: Account | None = None  # the system user of the pod; none: ours


def plan(pod: Json, container: Json, run: int, around: Around) -> Plan:
    """Return how to start a container; raise NotYet if that cannot be now."""
    ground, sources = around.ground, around.sources
    metadata = pod["metadata"]
    directory = ground.directory(pod)
    address = sources.where.pod_ip
    alias = _alias(container, ground)
    given_ports: dict[str, int] = {}
    replaced: list[str] = []

    def instead(name: str, value: str) -> str:
        return _instead(name, value, pod, around, given_ports, replaced)

    keeps = offer(pod, container["name"], run, sources.view, own=directory, kept=ground.checkpoints)
    env = environment(container, sources, {**_given(pod, alias, around), **keeps.env}, instead)
    argv, notes = _argv(container, alias, env)
    held_ports = _held_ports(pod, argv, around, replaced)
    places = Places(pod=directory, claims=ground.claims, host_paths=ground.host_paths)
    volumes = volumes_of(pod, places, sources)
    mounts = [*keeps.mounts, *mounts_of(container, pod, volumes, env.written)]
    cwd = container.get("workingDir") or (alias.working_dir if alias else "") or "/"
    whole = env.whole
    if ground.tier == 0:
        put = _rewriting(pod, address, mounts, around.others)
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
        tier=ground.tier,
        directory=f"{directory}/containers/{name}",
        log=f"{ground.logs}/{namespace}/{metadata['uid']}/{name}.log",
        hostname=hostname_of(pod),
        notes=notes,
        hosts=f"{directory}/hosts" if ground.tier else "",
        mounts=(*_programs(whole), *_tools(around), *mounts) if ground.tier else (),
        message_path=container.get("terminationMessagePath") or _MESSAGE_PATH,
        says_log_on_error=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
        memory_bytes=Quantity.from_raw(limit).units,
        errands=_errands(pod, name, address),
        owner=(around.account.uid, around.account.gid) if around.account else None,
        hidden=ground.hidden,
    )
    record = Record(
        namespace=namespace,
        pod=metadata["name"],
        uid=metadata["uid"],
        container=name,
        run=run,
        node=pod["spec"].get("nodeName", ""),
        address=address,
        devices=around.held,
        given_ports=given_ports,
        held_ports=held_ports,
        owner=launch.owner,
    )
    text = hosts_text(pod, address, around.others)
    return Plan(launch, record, (*volumes.values(), *keeps.volumes), mounts, text)


def _given(pod: Json, alias: Alias | None, around: Around) -> dict[str, str]:
    """Return what the machine says in every environment."""
    env = {**around.ground.env, "HOSTNAME": hostname_of(pod), **variables(around.held)}
    if alias is not None:
        env |= alias.env
        if alias.path:
            env["PATH"] = f"{alias.path}:{env.get('PATH', '')}".rstrip(":")
    if account := around.account:
        env |= {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}
    if around.ground.tools:
        tools = _TOOLS if around.ground.tier else around.ground.tools
        env["UNISONO_TOOLS"] = tools
        env["PATH"] = f"{tools}:{env.get('PATH', '')}".rstrip(":")
        env |= dict.fromkeys(_REMOTE_SHELLS, f"{tools}/ssh")
    # Whoever looks for processes of a pod that got away finds them by this.
    env["UNISONO_POD_UID"] = pod["metadata"]["uid"]
    return env


def _instead(
    name: str,
    value: str,
    pod: Json,
    around: Around,
    given: dict[str, int],
    replaced: list[str],
) -> str:
    """Return what a variable says here: a port of the gang's own, devices that are there."""
    if name == _PROCESSES and value in ("auto", "gpu"):
        count = sum(map(len, around.held.values()))
        return str(count) if count else value
    if name in VARIABLES and is_digits(value):
        gang = f"{gang_of(pod)}#{attempt_of(pod)}:{value}"
        given[gang] = around.ports.of(gang, pod["metadata"]["uid"])
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
        return [], ("unisono: no sshd is needed here: ssh reaches the pod without it",)
    if words:
        return [expand(str(word), env.written) for word in words], ()
    image = container.get("image", "")
    return [], (
        f"unisono: nothing is known of image {image} here, and the container has no command; "
        "it waits until it is stopped",
    )


def is_sshd(program: str) -> bool:
    """Say whether a program only waits for others to enter, which they can do without it."""
    return program.rpartition("/")[2] == "sshd"


def _alias(container: Json, ground: Ground) -> Alias | None:
    image = str(container.get("image", ""))
    return next((one for one in ground.aliases if fnmatchcase(image, one.image)), None)


def _errands(pod: Json, container: str, address: str) -> tuple[str, ...]:
    """Return the names of a container for errands; a pod's first one goes by the address alone."""
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


def _tools(around: Around) -> list[Mount]:
    """Return our own programs, which may lie where containers do not see them."""
    ground, is_others = around.ground, around.account is not None
    found = [
        Mount(source=path, target=path, read_only=is_others)
        for path in ground.programs
        if is_others or path.startswith("/tmp/")
    ]
    if ground.tools:
        found.append(Mount(source=ground.tools, target=_TOOLS, read_only=True))
    return found


def _held_ports(
    pod: Json, argv: Sequence[str], around: Around, replaced: Sequence[str]
) -> dict[int, str]:
    hosts = [name for host in around.others for name in host.names if "." in name]
    hosts += [name for name in own_names(pod) if "." in name]
    wanted = written_ports(pod, argv, hosts, replaced[-1] if replaced else "")
    gang = gang_of(pod)
    around.ports.hold(gang, pod["metadata"]["uid"], sorted(wanted))
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
