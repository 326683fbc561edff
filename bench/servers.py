"""Admissions on a real API server and etcd, beside Kueue: the one benchmark that needs programs.

`make controlplane` builds the servers, users that want a comparison build Kueue (real/kueue.py says
how) and names its command: `--peer kueue=./minimalkueue`. Without them nothing is run, and that is
what the verdict says. `make bench-real` is about the same servers, with more families.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from bench.harness import Finding, Peer, Row, Scale, not_run, times_peer
from bench.real import admissions, kueue
from tests.real.binaries import NoControlPlane

KUEUE = Peer(name="Kueue")
TIMES_KUEUE = 1.5
WHAT = "workloads a second beside Kueue"


class NoSuchPeer(Exception):
    """A peer was named that this benchmark cannot run."""


class _Choice:
    """What the command line chose; one for the whole process."""

    kueue: str | None = None


def choose(peers: Iterable[str]) -> None:
    """Take commands of peers, as NAME=COMMAND."""
    for each in peers:
        name, _, command = each.partition("=")
        if name != "kueue" or not command:
            raise NoSuchPeer(f"--peer {each!r}: the only peer with a command is kueue=COMMAND")
        _Choice.kueue = command


def measure(scale: Scale) -> Iterator[Finding]:
    """Drive the load of Kueue's own test with us, then with Kueue."""
    ours: Row | None = None
    try:
        if scale != "full":
            raise NoControlPlane("only by name or with --full: it starts real servers")
        for found in admissions.measure(scale):
            yield found
            if isinstance(found, Row) and found.what == admissions.RATE:
                ours = found
        if _Choice.kueue is None:
            raise kueue.NoKueue("no command; name it with --peer kueue=COMMAND")
        assert ours is not None, "a rate was measured"
        for found in kueue.measure(scale, command=_Choice.kueue):
            yield found
            if isinstance(found, Row) and found.what.endswith(admissions.RATE):
                peer = msgspec.structs.replace(KUEUE, value=found.median)
                yield times_peer(WHAT, ours, peer, TIMES_KUEUE)
    except (NoControlPlane, kueue.NoKueue) as reason:
        yield not_run(
            WHAT, at="15,000 workloads", limit=TIMES_KUEUE, unit="1/s", peer=KUEUE, why=str(reason)
        )
