"""The embedded cluster put together: store, API, HTTPS, bootstrap; and taken down again."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import json
import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unisono import __version__
from unisono.apiserver.access.authorize import authorizer_for
from unisono.apiserver.access.certify import CannotCertify, certificates
from unisono.apiserver.access.credential_files import (
    Exposed,
    read_token,
    refuse_exposed,
    write_kubeconfig,
)
from unisono.apiserver.access.filters import (
    LOOPBACK,
    Authenticator,
    BadUsers,
    RequestFilter,
    hash_token,
    load_users,
)
from unisono.apiserver.access.reviews import RoleBasedAccess
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import BootstrapFailed, CannotStore, bootstrap, install
from unisono.apiserver.http_entry import HttpEntry
from unisono.apiserver.request import User
from unisono.apiserver.rest.pod_logs import LogFiles
from unisono.apiserver.storage.database import Database, Unusable
from unisono.apiserver.storage.store import Store, WriteFailed
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.policy.settings import Settings, counting_policy, settings_from
from unisono.net.http.server import Certificate, serving
from unisono.net.listener import CannotListen, listen, local_socket
from unisono.runtime.clock import seconds_now
from unisono.runtime.ids import new_uid, random_source
from unisono.runtime.instance import POD_UIDS, Instance, InstanceError
from unisono.runtime.policy_file import Chosen

if TYPE_CHECKING:
    from unisono.engine.cycle import Decides
    from unisono.monitor.dcgm.exporter import Extent
    from unisono.runner.process.system_users import SystemUsers
    from unisono.runner.run_mode import RunMode
    from unisono.runtime.embedded.controllers import AtWork

ADMIN = User(name="unisono-admin", groups=("system:masters", "system:authenticated"))
_HOST = "127.0.0.1"
_HOUSEKEEPING_SECONDS = 30.0
# While there is more to remove than one round takes.
_MORE_HOUSEKEEPING_SECONDS = 1.0
# What a disk says that has no room, or may not be written to.
_DISK_ERRORS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO))
_POLICIES = "/apis/unisono.dev/v1/policies/unisono"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the operator of an instance chose."""

    port: int | None = None
    listen: str = _HOST
    users: Path | None = None  # more users than the owner; roles count then
    pods: RunMode = "simulated"
    needs_nodes: bool = True  # False: quota alone decides until the first node joins
    speed: float = 1.0  # of simulated pods
    is_power_safe: bool = True
    policy: Chosen | None = None
    decides: Decides | None = None  # instead of the engine itself: timed, or recorded
    record: Path | None = None  # the folder for recordings of decisions
    metrics_port: int | None = None  # None: the usual ones if free; 0: no pages on loopback
    gpu_metrics: Extent | None = None  # None: all, and less from 2,000 GPUs on
    grafana: str = ""  # its address, for the web page to link to
    objects: tuple[dict[str, Any], ...] = ()  # applied at every start, as a person would
    pod_uids: tuple[int, int] = POD_UIDS  # system users of process pods of several people
    private: tuple[Path, ...] = ()  # more that process pods do not see, beside our own folder


@dataclass(frozen=True, slots=True)
class Answering:
    """An API that answers, without controllers yet."""

    api: Api
    url: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster at work."""

    api: Api
    url: str
    at_work: AtWork


async def _put(
    api: Api, nodes: Iterable[dict[str, Any]], objects: Iterable[dict[str, Any]]
) -> None:
    """Create what a cluster begins with; nodes and objects of the user may be invalid."""
    try:
        await bootstrap(api, nodes)
        for obj in objects:
            await install(api, path_of(api, obj), obj, replaces=True)
    except BootstrapFailed as refusal:
        raise InvalidManifest("", str(refusal)) from refusal


@contextlib.asynccontextmanager
async def running(
    instance: Instance,
    choices: Choices,
    nodes: Iterable[dict[str, Any]] = (),
) -> AsyncIterator[Running]:
    """Run the cluster of a folder that this process has locked, until the block ends."""
    async with (
        answering(instance, choices, nodes) as there,
        working(there, instance, choices) as cluster,
    ):
        yield cluster


@contextlib.asynccontextmanager
async def working(there: Answering, instance: Instance, choices: Choices) -> AsyncIterator[Running]:
    """Have the controllers at work on an API until the block ends.

    They and the engine take as long to load as everything else, so that is done here, in a thread:
    requests are answered meanwhile.
    """
    load = partial(importlib.import_module, "unisono.runtime.embedded.controllers")
    controllers = await asyncio.get_running_loop().run_in_executor(None, load)
    pods = controllers.Pods(
        directory=instance.directory / "run",
        logs=instance.logs,
        mode=choices.pods,
        speed=choices.speed,
        hidden=_hidden(instance, choices),
        accounts=_accounts(instance, choices),
    )
    controlling = controllers.controlling(
        there.api,
        pods,
        there.settings,
        refusals=instance.directory / "refusals",
        needs_nodes=choices.needs_nodes,
        decides=choices.decides,
    )
    async with controlling as at_work:
        yield Running(there.api, there.url, at_work)


def _hidden(instance: Instance, choices: Choices) -> dict[str, tuple[str, ...]]:
    """Return what process pods do not see, with the entries of each that they do.

    The pods of the owner of the instance act for the owner: `sbatch` in a batch script finds
    the cluster by its kubeconfig.
    """
    seen = (instance.kubeconfig.name,) if choices.users is None else ()
    private = dict.fromkeys((str(path.resolve()) for path in choices.private), ())
    return {**private, str(instance.directory.resolve()): seen}


def _accounts(instance: Instance, choices: Choices) -> SystemUsers | None:
    """Return the system users of process pods; None if all belong to the owner."""
    if choices.users is None:
        return None
    from unisono.runner.process.system_users import SystemUsers

    users = load_users(choices.users).values()
    given = {user.name: user.system_uid for user in users if user.system_uid}
    return SystemUsers(instance.directory / "run" / "uids.json", choices.pod_uids, given)


@contextlib.asynccontextmanager
async def answering(
    instance: Instance,
    choices: Choices,
    nodes: Iterable[dict[str, Any]] = (),
) -> AsyncIterator[Answering]:
    """Serve the API of a folder that this process has locked, until the block ends."""
    with _in_one_sentence(instance), _store(instance, choices) as store:
        if choices.users is not None:
            refuse_exposed(choices.users)
        token = read_token(instance.kubeconfig) or secrets.token_urlsafe(32)
        others = load_users(choices.users) if choices.users is not None else {}
        authenticator = Authenticator({**others, hash_token(token): ADMIN})
        hosts = tuple(dict.fromkeys((*LOOPBACK, choices.listen)))
        making = asyncio.ensure_future(certificates(instance.tls, now=seconds_now(), hosts=hosts))
        # With one user there is nothing to look up: the instance is theirs.
        authorizer = authorizer_for(store) if others else None
        reviews = RoleBasedAccess(authorizer, authenticator)
        outside = Environment(
            clock=seconds_now,
            new_uid=new_uid,
            random_source=random_source(),
            version=__version__,
            logs=LogFiles(instance.logs),
            reviews=reviews,
        )
        api = Api(store, outside)
        try:
            await _put(api, nodes, choices.objects)
            settings = await _settings(api, choices.policy)
            sock = _socket(instance, choices)
        except (InvalidManifest, CannotStore, CannotListen):
            with contextlib.suppress(CannotCertify, Exposed):
                await making  # its programs end before we do
            raise
        taken = sock.getsockname()[1]
        url = f"https://{_HOST if choices.listen in LOOPBACK else choices.listen}:{taken}"
        made = await making
        authority = made.authority.read_bytes()
        write_kubeconfig(instance.kubeconfig, url=url, authority_pem=authority, token=token)
        gate = RequestFilter(authenticator, hosts=hosts, may_impersonate=reviews.may_impersonate)
        front = HttpEntry(api, gate.admit)
        # `kubectl` remembers for hours which groups there are: this one is there from the start.
        api.endpoints.usage = _unmeasured
        certificate = Certificate(made.chain, made.key)
        beside = local_socket(instance.socket)
        try:
            async with serving(front, sock, certificate, beside), _tidying(api, instance):
                yield Answering(api, url, settings)
        finally:
            instance.socket.unlink(missing_ok=True)
        await store.committed()


@contextlib.contextmanager
def _in_one_sentence(instance: Instance) -> Iterator[None]:
    """Say of what is wrong with an instance's files which one it is, and what comes next."""
    try:
        yield
    except (Unusable, Exposed, BadUsers, CannotCertify, CannotStore, WriteFailed) as error:
        raise InstanceError(str(error)) from error
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        where = error.filename or instance.directory
        message = f"{where}: {error.strerror}; free some space and start again"
        raise InstanceError(message) from error


@contextlib.contextmanager
def _store(instance: Instance, choices: Choices) -> Iterator[Store]:
    """Open the objects of an instance while the block lasts."""
    database = Database(instance.database, is_power_safe=choices.is_power_safe)
    try:
        store = Store(database)
    except Unusable:
        database.close()
        raise
    try:
        yield store
    finally:
        store.close()


def path_of(api: Api, obj: dict[str, Any]) -> str:
    """Return the address of an object."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    for served in api.catalogue.served():
        if (served.group, served.version, served.kind) == (group, version, obj["kind"]):
            metadata = obj["metadata"]
            root = f"/apis/{group}/{version}" if group else f"/api/{version}"
            if served.namespaced:
                root += f"/namespaces/{metadata.get('namespace', 'default')}"
            else:
                metadata.pop("namespace", None)  # clients drop it, too
            return f"{root}/{served.plural}/{metadata['name']}"
    raise InstanceError(f"{obj['apiVersion']} {obj['kind']} is not served here")


async def _settings(api: Api, policy: Chosen | None) -> Settings:
    """Return what the operator chose, and let the API know it, too."""
    if policy is not None:
        await install(api, _POLICIES, dict(policy.stored), replaces=True)
        return policy.settings
    stored = [json.loads(one.data) for one in api.store.listing("unisono.dev/policies")]
    return settings_from(counting_policy(stored))


def _socket(instance: Instance, choices: Choices) -> socket.socket:
    """Listen on the port that was asked for, else the one of last time, else any."""
    host = choices.listen
    if choices.port is not None:
        return listen(host, choices.port, "--port")
    last = instance.remembered().get("port")
    with contextlib.suppress(CannotListen):
        return listen(host, last if isinstance(last, int) else 0)
    return listen(host, 0, "--listen")


def _unmeasured(plural: str) -> list[dict[str, Any]]:
    """Return no usage, as long as it is not measured yet."""
    return []


@contextlib.asynccontextmanager
async def _tidying(api: Api, instance: Instance) -> AsyncIterator[None]:
    """Tidy the store while the block lasts; end if its file was replaced."""

    async def tidy() -> None:
        pause = _HOUSEKEEPING_SECONDS
        while True:
            await asyncio.sleep(pause)
            if not api.store.is_in_place():
                raise InstanceError(
                    f"{instance.database} was removed or replaced while it was in use; what was "
                    "written since is in none of the files there: restore the folder from a backup"
                )
            pause = _MORE_HOUSEKEEPING_SECONDS if api.tidy() else _HOUSEKEEPING_SECONDS

    try:
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(tidy())
            try:
                yield
            finally:
                work.cancel()
    except BaseExceptionGroup as several:  # callers expect the one reason why it ended
        raise several.exceptions[0] from several.exceptions[0].__cause__
