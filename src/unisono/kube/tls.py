"""TLS contexts for what a kubeconfig says, made anew only when its certificates change."""

from __future__ import annotations

import os
import ssl
import tempfile

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
            _show(context, proof)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise BadConfig(f"a certificate or key of the kubeconfig is not usable: {error}") from error
    return context


def _show(context: ssl.SSLContext, proof: Proof) -> None:
    """Load our certificate; the library takes it from files only, so it is in one for a moment."""
    descriptor, path = tempfile.mkstemp(prefix="unisono-")  # readable by us alone
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(proof.certificate + b"\n" + proof.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
