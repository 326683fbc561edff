"""A certificate authority for one test run, and a certificate of a server on loopback."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FRONT_PROXY = "front-proxy-client"
_LIFE = datetime.timedelta(days=2)
_CLOCK_SKEW = datetime.timedelta(hours=1)


def write_certificates(directory: Path) -> None:
    """Write `ca.crt`, and `server.crt` with `server.key`, into the directory."""
    authority_key = write_key(directory / "ca.key")
    authority = (
        _builder("unisono test authority", issuer="unisono test authority", key=authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server_key = write_key(directory / "server.key")
    names = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    server = (
        _builder("127.0.0.1", issuer="unisono test authority", key=server_key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    # By which an extension server knows that the API server asks: of an authority of its
    # own, or any client certificate of the cluster would do.
    proxy_authority_key = write_key(directory / "front-proxy-ca.key")
    proxy_authority = (
        _builder("front proxies", issuer="front proxies", key=proxy_authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(proxy_authority_key, hashes.SHA256())
    )
    proxy_key = write_key(directory / "front-proxy.key")
    proxy = (
        _builder(FRONT_PROXY, issuer="front proxies", key=proxy_key)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(proxy_authority_key, hashes.SHA256())
    )
    for name, certificate in (
        ("ca.crt", authority),
        ("server.crt", server),
        ("front-proxy-ca.crt", proxy_authority),
        ("front-proxy.crt", proxy),
    ):
        (directory / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def write_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Write a new private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    return key


def _builder(
    subject: str, *, issuer: str, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _LIFE)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
