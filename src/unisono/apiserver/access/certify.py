"""Certificates made by a process of its own: `python -m unisono.apiserver.access.certify`.

What makes certificates weighs nine megabytes, is needed for a few milliseconds at a start, and a
server would carry it for as long as it runs. While the other process works, the server starts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from unisono.apiserver.access.credential_files import Exposed

_MODULE = "unisono.apiserver.access.certify"
_EXPOSED = 3


class Made(NamedTuple):
    """The files of our certificate and key, and of the authority that clients trust."""

    chain: Path
    key: Path
    authority: Path


class CannotCertify(Exception):
    """There are no certificates, for a reason that is in the message."""


async def certificates(directory: Path, *, now: float, hosts: Sequence[str]) -> Made:
    """Return the certificate of a folder, as `tls.ensure_certificates` does; raise `Exposed`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", _MODULE, str(directory), str(now), *hosts),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, wrong = await process.communicate()
    if process.returncode == _EXPOSED:
        raise Exposed(wrong.decode().strip())
    if process.returncode != 0:
        why = wrong.decode().strip()
        raise CannotCertify(
            f"no certificates could be made in {directory}: {why}; look at the disk and start again"
        )
    chain, key, authority = (Path(line) for line in output.decode().splitlines())
    return Made(chain, key, authority)


def main(arguments: Sequence[str]) -> int:
    """Make what is missing and say where it is."""
    from unisono.apiserver.access.tls import ensure_certificates

    directory, now, *hosts = arguments
    try:
        found = ensure_certificates(Path(directory), now=float(now), hosts=hosts)
    except Exposed as error:
        sys.stderr.write(f"{error}\n")
        return _EXPOSED
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{found.chain}\n{found.key}\n{found.authority}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
