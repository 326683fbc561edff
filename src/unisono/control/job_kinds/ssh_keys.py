"""Keys with which the pods of one job may enter each other by ssh.

Ed25519 instead of the RSA of the upstream operators: a key takes microseconds instead of a tenth of
a second, and every OpenSSH since 2014 reads it, whatever its file is called.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A private key as OpenSSH writes it, and the line for authorized_keys."""

    private: str
    public: str


def new_key_pair() -> KeyPair:
    """Return a new key."""
    # Not before: it weighs nine megabytes, and most clusters never need a key.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return KeyPair(private.decode(), public.decode() + "\n")
