"""Certificates."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
from cryptography import x509

from unisono.apiserver.access.credential_files import Exposed
from unisono.apiserver.access.tls import Certificate, ensure_certificates

NOW = 1_800_000_000.0
DAY = 86_400
HOSTS = ("127.0.0.1", "::1", "localhost")


def ensure(tmp_path: Path, now: float = NOW, hosts: tuple[str, ...] = HOSTS) -> Certificate:
    return ensure_certificates(tmp_path / "tls", now=now, hosts=hosts)


def contents(certificate: Certificate) -> tuple[bytes, ...]:
    return tuple(
        path.read_bytes() for path in (certificate.chain, certificate.key, certificate.authority)
    )


def test_a_leaf_of_one_year_from_an_authority_of_its_own(tmp_path: Path) -> None:
    made = ensure(tmp_path)
    leaf = x509.load_pem_x509_certificate(made.chain.read_bytes())
    authority = x509.load_pem_x509_certificate(made.authority.read_bytes())
    leaf.verify_directly_issued_by(authority)
    assert abs(leaf.not_valid_after_utc.timestamp() - NOW - 365 * DAY) < 60
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    for path in (tmp_path / "tls").iterdir():
        assert path.stat().st_mode & 0o077 == 0


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    first = contents(ensure(tmp_path))
    assert contents(ensure(tmp_path, NOW + 200 * DAY)) == first


@pytest.mark.parametrize(
    ("now", "hosts"),
    [(NOW + 300 * DAY, HOSTS), (NOW, (*HOSTS, "cluster.example")), (NOW - 10 * DAY, HOSTS)],
)
def test_the_leaf_is_renewed_and_the_authority_stays(
    tmp_path: Path, now: float, hosts: tuple[str, ...]
) -> None:
    chain, key, authority = contents(ensure(tmp_path))
    renewed = contents(ensure(tmp_path, now, hosts))
    assert renewed[0] != chain
    assert renewed[1] != key
    assert renewed[2] == authority


def test_an_authority_near_its_end_is_replaced(tmp_path: Path) -> None:
    authority = contents(ensure(tmp_path))[2]
    assert contents(ensure(tmp_path, NOW + 3500 * DAY))[2] != authority


@pytest.mark.parametrize("name", ["server.key", "server.crt", "ca.key", "ca.crt"])
@pytest.mark.parametrize("content", [b"", b"rubbish", None])
def test_a_lost_or_broken_file_is_made_again(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    ensure(tmp_path)
    path = tmp_path / "tls" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o600)
    made = ensure(tmp_path)
    leaf = x509.load_pem_x509_certificate(made.chain.read_bytes())
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(made.authority.read_bytes()))
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made.chain, made.key)


def test_a_key_that_does_not_belong_to_its_certificate(tmp_path: Path) -> None:
    """What a start leaves behind that dies between the two files."""
    first = ensure(tmp_path)
    other = ensure_certificates(tmp_path / "other", now=NOW, hosts=HOSTS)
    first.key.write_bytes(other.key.read_bytes())
    made = ensure(tmp_path)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made.chain, made.key)


@pytest.mark.parametrize("name", ["server.key", "ca.key", "."])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, name: str) -> None:
    ensure(tmp_path)
    (tmp_path / "tls" / name).chmod(0o755)
    with pytest.raises(Exposed, match="chmod"):
        ensure(tmp_path)


def test_a_real_handshake(tmp_path: Path) -> None:
    import time

    made = ensure(tmp_path, time.time())
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(made.chain, made.key)
    client_side = ssl.create_default_context(cafile=str(made.authority))
    one, other = socket.socketpair()

    def serve() -> None:
        with server_side.wrap_socket(other, server_side=True) as connection:
            connection.sendall(b"hello")

    thread = threading.Thread(target=serve)
    thread.start()
    with client_side.wrap_socket(one, server_hostname="127.0.0.1") as connection:
        assert connection.recv(5) == b"hello"
    thread.join()
