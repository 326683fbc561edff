"""A certificate authority, a server on loopback and a client, made once per test run."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NOW = datetime.datetime.now(datetime.UTC)
_ISSUER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as text."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder("authority", self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.certificate = _pem(builder.sign(self._key, hashes.SHA256()))

    def server(self, *names: str, address: str = "127.0.0.1") -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        if address:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(address)))
        return self._signed("server", key, x509.SubjectAlternativeName(alternatives))

    def client(self, name: str) -> Pair:
        return self._signed(name, ec.generate_private_key(ec.SECP256R1()))

    def _signed(
        self, name: str, key: ec.EllipticCurvePrivateKey, *extensions: x509.ExtensionType
    ) -> Pair:
        builder = _builder(name, key)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), private)


def _builder(name: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(_ISSUER)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - datetime.timedelta(hours=1))
        .not_valid_after(_NOW + datetime.timedelta(days=1))
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
