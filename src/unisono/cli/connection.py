"""How the commands for objects reach a cluster, and what they say when it says no.

Which cluster: --kubeconfig, else the instance of --data-dir or $UNISONO_DATA_DIR, else what
KUBECONFIG names, else the default instance if it runs, else what kubectl would take.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.engine.model.errors import InvalidManifest, UnisonoError
from unisono.runtime.errors import AnswerIsNo
from unisono.runtime.instance import Instance, InstanceError, default_directory

if TYPE_CHECKING:  # loading the client takes longer than answering --help
    from unisono.kube.access.config import Access
    from unisono.kube.client import Client
    from unisono.kube.errors import KubeError

Work = Callable[["Client", argparse.Namespace], Awaitable[int]]

CLUSTER_OPTIONS = """
The cluster is the one of --kubeconfig, else of --data-dir or $UNISONO_DATA_DIR, else of KUBECONFIG,
else the default instance of `unisono up` if it runs, else what kubectl would take.
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
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("-n", "--namespace", default="", metavar="NS", help="default: the context's")
    if has_everywhere:
        made.add_argument(
            "-A", "--all-namespaces", action="store_true", dest="everywhere", help="all of them"
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
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="the instance of `unisono up`")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="another cluster")
    parser.add_argument("--context", default="", metavar="NAME", help="which one in the kubeconfig")


def asked(arguments: argparse.Namespace, work: Work) -> int:
    """Connect, do the work and return its exit code; trouble is told in plain words."""
    import asyncio

    with in_plain_words():
        access = access_of(arguments)
        return asyncio.run(_connected(access, arguments, work))


async def _connected(access: Access, arguments: argparse.Namespace, work: Work) -> int:
    from unisono.kube.connect import connected
    from unisono.runtime.clock import RealClock
    from unisono.runtime.ids import chance, new_uid

    async with connected(
        access,
        clock=RealClock(),
        chance=chance(),
        ids=new_uid,
        interactive=sys.stdin is not None and sys.stdin.isatty(),
        on_warning=lambda text: print(f"unisono: warning: {text}", file=sys.stderr),
    ) as client:
        # At a terminal, an error at once is better than half a minute of retries.
        return await work(client.variant(most_tries=1), arguments)


def access_of(arguments: argparse.Namespace) -> Access:
    """Return which cluster is meant; see above."""
    from unisono.kube.access.config import find_access

    if arguments.kubeconfig is not None:
        return find_access(path=arguments.kubeconfig, context=arguments.context)
    if arguments.data_dir is not None or os.environ.get("UNISONO_DATA_DIR"):
        instance = Instance(arguments.data_dir or default_directory())
        if not instance.is_running():
            raise InstanceError(
                f"nothing runs in {instance.directory}; start it with: unisono up --data-dir "
                f"{instance.directory}"
            )
        return find_access(path=instance.kubeconfig, context=arguments.context)
    if not os.environ.get("KUBECONFIG"):
        instance = Instance(default_directory())
        if instance.is_running():
            return find_access(path=instance.kubeconfig, context=arguments.context)
    return find_access(context=arguments.context)


@contextmanager
def in_plain_words(about: str = "") -> Iterator[None]:
    """Turn the client's trouble into what `main` has exit codes for; `about` stands before it."""
    from unisono.kube.errors import KubeError

    try:
        yield
    except KubeError as trouble:
        raise _told(trouble, f"{about}: " if about else "") from trouble


def _told(trouble: KubeError, before: str) -> UnisonoError:
    from unisono.kube import errors as kinds

    message = before + " ".join(str(trouble).split())
    match trouble:
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


def worst(troubles: list[UnisonoError]) -> UnisonoError:
    """Return one error that says them all, of the family that weighs most."""
    message = "\n".join(str(trouble) for trouble in troubles)
    for family in (ClusterFailed, AnswerIsNo):
        if any(isinstance(trouble, family) for trouble in troubles):
            return family(message)
    return InvalidManifest("", message)
