"""How the commands for objects reach a cluster, and what they say when it says no.

Which cluster: --kubeconfig, else the instance of --data-dir or $UNISONO_DATA_DIR, else what
KUBECONFIG names, else the default instance if it runs, else the one that kubectl would use.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.help_format import HelpFormat
from unisono.engine.model.errors import InvalidManifest, UnisonoError
from unisono.runtime import AnswerIsNo
from unisono.runtime.instance import Instance, InstanceError, default_directory

if TYPE_CHECKING:  # loading the client takes longer than answering --help
    from unisono.kube.client import Client
    from unisono.kube.errors import KubeError
    from unisono.kube.kubeconfig import Access

# A start takes two seconds, and some twenty with tens of thousands of objects to read again.
_STARTING_SECONDS = 30.0
# `unisono up` that was called in the same moment has to load before it takes its folder.
_ABOUT_TO_START_SECONDS = 2.0
_QUIET_SECONDS = 1.0  # a wait that is not noticed needs no line
_LOOK_AGAIN_SECONDS = 0.05
_LOOPBACK = "https://127.0.0.1:"

Work = Callable[["Client", argparse.Namespace], Awaitable[int]]

CLUSTER_OPTIONS = """
The cluster is the one of --kubeconfig, else of --data-dir or $UNISONO_DATA_DIR, else of KUBECONFIG,
else the default instance of `unisono up` if it runs, else the one that kubectl would use.
"""


class ClusterFailed(UnisonoError):
    """The cluster could not be asked, or is in trouble itself."""


def verb_parser(
    description: str, examples: str, *, has_everywhere: bool = False
) -> argparse.ArgumentParser:
    """Return a parser with what all these commands have in common."""
    made = argparse.ArgumentParser(
        description=description,
        epilog=f"{examples}{CLUSTER_OPTIONS}",
        formatter_class=HelpFormat,
        allow_abbrev=False,
    )
    made.add_argument(
        "-n",
        "--namespace",
        default="",
        metavar="NS",
        help="a namespace (default: that of the context)",
    )
    if has_everywhere:
        made.add_argument(
            "-A", "--all-namespaces", action="store_true", dest="everywhere", help="all namespaces"
        )
    add_cluster_options(made)
    return made


MANIFESTS = "manifests: files, folders (their .yaml, .yml and .json files), or - for stdin"


def add_filenames(
    parser: argparse.ArgumentParser, words: str = MANIFESTS, *, is_required: bool = True
) -> None:
    """Add -f, which may be given several times and take several names."""
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=None if is_required else [],
        required=is_required,
        help=words,
    )


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which cluster is meant."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="a cluster of `unisono up`, by its folder"
    )
    group.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="a cluster, by its kubeconfig"
    )
    group.add_argument("--context", default="", metavar="NAME", help="a context of the kubeconfig")


def asked(arguments: argparse.Namespace, work: Work) -> int:
    """Connect, do the work and return its exit code; trouble is told in plain words."""
    import asyncio

    with in_plain_words():
        access = access_of(arguments)
        return asyncio.run(_connected(access, arguments, work))


async def _connected(access: Access, arguments: argparse.Namespace, work: Work) -> int:
    from unisono.kube.connect import connected
    from unisono.runtime.clock import RealClock
    from unisono.runtime.ids import new_uid, random_source

    async with connected(
        access,
        clock=RealClock(),
        random_source=random_source(),
        ids=new_uid,
        interactive=sys.stdin is not None and sys.stdin.isatty(),
        on_warning=lambda text: print(f"unisono: warning: {text}", file=sys.stderr),
    ) as client:
        # At a terminal, an error at once is better than half a minute of retries.
        return await work(client.variant(most_tries=1), arguments)


def access_of(arguments: argparse.Namespace) -> Access:
    """Return which cluster is meant; see above."""
    from unisono.kube.kubeconfig import find_access

    named = os.environ.get("KUBECONFIG", "")
    if arguments.kubeconfig is not None:
        wait_for_instance_of(arguments.kubeconfig)
        return find_access(path=arguments.kubeconfig, context=arguments.context)
    if arguments.data_dir is not None or os.environ.get("UNISONO_DATA_DIR"):
        instance = Instance(arguments.data_dir or default_directory())
        wait_until_it_answers(instance)
        return find_access(path=instance.kubeconfig, context=arguments.context)
    if not named:
        instance = Instance(default_directory())
        if instance.is_running():
            wait_until_it_answers(instance)
            return find_access(path=instance.kubeconfig, context=arguments.context)
    elif os.pathsep not in named:
        wait_for_instance_of(Path(named))
    return find_access(context=arguments.context)


async def is_embedded(client: Client) -> bool:
    """Say whether a server is the API of `unisono up`, which says so in its version."""
    import json

    answer = json.loads(await client.read("/version"))
    return "+unisono." in str(answer.get("gitVersion"))


def wait_for_instance_of(path: Path | str) -> None:
    """Wait for the instance that a kubeconfig belongs to; any other kubeconfig needs no wait.

    The lock of an instance tells nothing on another machine, so a kubeconfig that names an address
    of its own is believed.
    """
    kubeconfig = Path(path)
    instance = Instance(kubeconfig.parent)
    if kubeconfig.name != instance.kubeconfig.name or not os.access(instance.lock_file, os.W_OK):
        return
    if instance.is_running() or not kubeconfig.exists() or _LOOPBACK in kubeconfig.read_text():
        wait_until_it_answers(instance)


def wait_until_it_answers(instance: Instance) -> None:
    """Wait while `unisono up` is still starting; end with the next step if nothing will answer."""
    began = time.monotonic()
    is_told = False
    while not instance.is_running() and time.monotonic() - began < _ABOUT_TO_START_SECONDS:
        time.sleep(_LOOK_AGAIN_SECONDS)
    while instance.is_starting():
        waited = time.monotonic() - began
        if waited > _STARTING_SECONDS:
            raise InstanceError(
                f"the cluster in {instance.directory} is still starting after "
                f"{_STARTING_SECONDS:.0f} seconds; try again once `unisono up` prints its api line"
            )
        if waited > _QUIET_SECONDS and not is_told:
            is_told = True
            print(f"unisono: waiting for {instance.directory} to start", file=sys.stderr)
        time.sleep(_LOOK_AGAIN_SECONDS)
    if not instance.is_running():
        raise InstanceError(
            f"nothing runs in {instance.directory}; start it with: unisono up --data-dir "
            f"{instance.directory}"
        )


@contextmanager
def in_plain_words(about: str = "") -> Iterator[None]:
    """Turn the client's trouble into what `main` has exit codes for; `about` stands before it."""
    from unisono.kube.errors import KubeError

    try:
        yield
    except KubeError as error:
        raise _told(error, f"{about}: " if about else "") from error


def _told(error: KubeError, before: str) -> UnisonoError:
    from unisono.kube import errors as kinds

    message = before + " ".join(str(error).split())
    match error:
        case kinds.BadRequest() | kinds.Invalid() | kinds.UnknownKind() | kinds.BadConfig():
            return InvalidManifest("", message)
        case (
            kinds.NotFound()
            | kinds.Conflict()
            | kinds.AlreadyExists()
            | kinds.Forbidden()
            | kinds.Gone()
            | kinds.TooManyRequests()
        ):
            return AnswerIsNo(message)
        case kinds.Unauthorized():
            return ClusterFailed(f"{message}; the cluster does not know the user of the kubeconfig")
        case _:
            return ClusterFailed(message)


def worst(errors: list[UnisonoError]) -> UnisonoError:
    """Return one error that says them all, of the family that weighs most."""
    message = "\n".join(str(error) for error in errors)
    for family in (ClusterFailed, AnswerIsNo):
        if any(isinstance(error, family) for error in errors):
            return family(message)
    return InvalidManifest("", message)
