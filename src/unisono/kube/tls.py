"""TLS contexts: for what a kubeconfig says, and for a listener whose certificate is in files.

Both are made anew only when their certificates change.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from unisono.kube.credentials import Proof
from unisono.kube.errors import BadConfig


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


class ServerCertificate:
    """A certificate and its key in two files, shown to clients and read again when renewed.

    cert-manager and kubelets replace such files while a listener serves with them.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        """Read both; raise `BadConfig` if they are not there or do not belong together."""
        self._chain = chain
        self._key = key
        self._shown = self._read()
        self.context = _server_context(*self._shown)

    def refresh(self) -> bool:
        """Show what the files hold now; say whether that is new. What was shown stays if it is bad.

        It is tried on a context of its own first: a key that does not fit its certificate, because
        only one of the files was replaced yet, would take from the living one what it has.
        """
        found = self._read()
        if found == self._shown:
            return False
        _server_context(*found)
        show(self.context, *found)
        self._shown = found
        return True

    def _read(self) -> tuple[bytes, bytes]:
        try:
            return self._chain.read_bytes(), self._key.read_bytes()
        except OSError as error:
            message = f"{error.filename}: {error.strerror or error}"
            raise BadConfig(f"the certificate cannot be read: {message}") from error


def _server_context(chain: bytes, key: bytes) -> ssl.SSLContext:
    if b"ENCRYPTED" in key:
        raise BadConfig("the key of the certificate is encrypted; store it without a passphrase")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        show(context, chain, key)
    except ssl.SSLError as error:
        raise BadConfig(f"the certificate and its key are not usable together: {error}") from error
    return context


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
