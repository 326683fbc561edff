"""The certificate of an instance: an authority of its own, and a certificate signed by it.

kubectl sends its token over TLS only, so the API speaks TLS on loopback, too. The authority lives
as long as the instance; the certificate is renewed at a start when most of its year is over.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from unisono.apiserver.access.credential_files import refuse_exposed, write_privately

_AUTHORITY_DAYS = 3650
_DAYS = 365
# Renewed at a start when less than this share of its life is left.
_RENEW_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of our certificate and key, and of the authority that clients trust."""

    chain: Path
    key: Path
    authority: Path


def ensure_certificates(directory: Path, *, now: float, hosts: Sequence[str]) -> Certificate:
    """Return the certificate in a folder for these hosts; make or renew what is missing.

    Raise `Exposed` if others can read a key. A start that was cut short leaves at worst files that
    do not belong together, and those are made again.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    moment = datetime.fromtimestamp(now, UTC)
    authority_key_file, authority_file = directory / "ca.key", directory / "ca.crt"
    key_file, chain_file = directory / "server.key", directory / "server.crt"
    for path in (directory, authority_key_file, key_file):
        refuse_exposed(path)
    authority, authority_key = _load(authority_file), _load_key(authority_key_file)
    if (
        authority is None
        or authority_key is None
        or authority.public_key() != authority_key.public_key()
        or authority.not_valid_after_utc <= moment + timedelta(days=_DAYS)
    ):
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = _authority(authority_key, moment)
        write_privately(authority_key_file, _pem_key(authority_key))
        write_privately(authority_file, _pem(authority))
    key, leaf = _load_key(key_file), _load(chain_file)
    if key is None or leaf is None or not _is_good(leaf, key, authority, moment, hosts):
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _leaf(key, authority, authority_key, moment, hosts)
        write_privately(key_file, _pem_key(key))
        write_privately(chain_file, _pem(leaf))
    return Certificate(chain_file, key_file, authority_file)


class Fresh(NamedTuple):
    """A new certificate with its key, and the authority that vouches for it; all as PEM."""

    certificate: bytes
    key: bytes
    authority: bytes


def fresh_certificate(*, now: float, hosts: Sequence[str]) -> Fresh:
    """Return a certificate for hosts, of an authority whose key is thrown away."""
    moment = datetime.fromtimestamp(now, UTC)
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(authority_key, moment)
    leaf = _leaf(key, authority, authority_key, moment, hosts)
    return Fresh(_pem(leaf), _pem_key(key), _pem(authority))


def life_left(certificate: bytes, now: datetime) -> float:
    """Return which share of its life a certificate still has; nothing if it is not to be read."""
    leaf = _parsed(certificate)
    return 0.0 if leaf is None else (leaf.not_valid_after_utc - now) / _whole(leaf)


def same_names(certificate: bytes, hosts: Sequence[str]) -> bool:
    """Say whether a certificate is for exactly these hosts."""
    leaf = _parsed(certificate)
    return leaf is not None and set(_names(hosts)) == _hosts_of(leaf)


def _is_good(
    leaf: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate,
    now: datetime,
    hosts: Sequence[str],
) -> bool:
    if leaf.public_key() != key.public_key():
        return False
    try:
        leaf.verify_directly_issued_by(authority)
    except (InvalidSignature, TypeError, ValueError):
        return False
    is_fresh = leaf.not_valid_after_utc - now >= _whole(leaf) * _RENEW_SHARE
    return is_fresh and leaf.not_valid_before_utc <= now and set(_names(hosts)) == _hosts_of(leaf)


def _whole(leaf: x509.Certificate) -> timedelta:
    return leaf.not_valid_after_utc - leaf.not_valid_before_utc


def _hosts_of(leaf: x509.Certificate) -> set[x509.GeneralName]:
    return set(leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def _names(hosts: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "unisono-ca")])
    return (
        _builder(name, name, key, now, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _leaf(
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate,
    issuer_key: ec.EllipticCurvePrivateKey,
    now: datetime,
    hosts: Sequence[str],
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "unisono")])
    return (
        _builder(name, issuer.subject, key, now, _DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(hosts)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ a little
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _load(path: Path) -> x509.Certificate | None:
    """Return the certificate in a file; None if there is none that can be read."""
    try:
        return _parsed(path.read_bytes())
    except FileNotFoundError:
        return None


def _parsed(pem: bytes) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        return None


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None
