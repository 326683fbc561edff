"""TLS contexts for what a kubeconfig says, made anew only when its certificates change."""

from __future__ import annotations

import contextlib
import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from typing import IO

from unisono.kube.credentials import Proof
from unisono.kube.trouble import BadConfig


class Contexts:
    """The context for the present proof."""

    def __init__(self, *, skip_verify: bool) -> None:
        """Prepare; `skip_verify` is what insecure-skip-tls-verify asks for."""
        self._skip_verify = skip_verify
        self._made_for: tuple[bytes | None, bytes, bytes] | None = None
        self._context: ssl.SSLContext | None = None

    def context(self, proof: Proof) -> ssl.SSLContext:
        """Return a context that shows our certificate and trusts the cluster's authority."""
        wanted = (proof.authority, proof.certificate, proof.key)
        if self._context is None or self._made_for != wanted:
            self._context = _context(proof, skip_verify=self._skip_verify)
            self._made_for = wanted
        return self._context


def _context(proof: Proof, *, skip_verify: bool) -> ssl.SSLContext:
    try:
        authority = None if proof.authority is None else proof.authority.decode("ascii")
        context = ssl.create_default_context(cadata=authority)
        if skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if proof.certificate:
            show(context, proof.certificate, proof.key)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise BadConfig(f"a certificate or key of the kubeconfig is not usable: {error}") from error
    return context


def show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate of ours; the library takes it from a file only, for a moment."""
    with _unseen_file() as (file, path):
        file.write(certificate + b"\n" + key)
        file.flush()
        context.load_cert_chain(path)


@contextlib.contextmanager
def _unseen_file() -> Iterator[tuple[IO[bytes], str]]:
    """Yield a file that only this process can read: in memory where the system has such files.

    The root of a container is often not to be written to, and keys do not belong on disks.
    """
    if sys.platform == "linux":
        with os.fdopen(os.memfd_create("unisono"), "wb") as file:
            yield file, f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(prefix="unisono-") as file:
            yield file, file.name
