"""The certificate of a listener: read from files, shown, and shown anew when it was renewed."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from unisono.apiserver.access.tls import Fresh, fresh_certificate
from unisono.kube.errors import BadConfig
from unisono.kube.tls import ServerCertificate
from unisono.runtime.clock import seconds_now


def fresh() -> Fresh:
    return fresh_certificate(now=seconds_now(), hosts=["127.0.0.1"])


def written(folder: Path, certificate: bytes, key: bytes) -> tuple[Path, Path]:
    chain_file, key_file = folder / "tls.crt", folder / "tls.key"
    chain_file.write_bytes(certificate)
    key_file.write_bytes(key)
    return chain_file, key_file


def shown(served: ServerCertificate) -> bytes:
    """Return the certificate that a client gets to see, as PEM."""

    async def main() -> bytes:
        async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        client = ssl.create_default_context()
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        server = await asyncio.start_server(close, "127.0.0.1", 0, ssl=served.context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
            found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.close()
        return ssl.DER_cert_to_PEM_cert(found).encode()

    return asyncio.run(main())


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    first, second = fresh(), fresh()
    served = ServerCertificate(*written(tmp_path, first.certificate, first.key))
    assert shown(served) == first.certificate
    assert not served.refresh()
    written(tmp_path, second.certificate, second.key)
    assert served.refresh()
    assert shown(served) == second.certificate


def test_half_a_renewal_changes_nothing_until_the_other_half_is_there(tmp_path: Path) -> None:
    first, second = fresh(), fresh()
    served = ServerCertificate(*written(tmp_path, first.certificate, first.key))
    for certificate, key in (
        (second.certificate, first.key),
        (b"", first.key),
        (second.certificate, b"no key\n"),
    ):
        written(tmp_path, certificate, key)
        with pytest.raises(BadConfig, match="not usable together"):
            served.refresh()
        assert shown(served) == first.certificate
    (tmp_path / "tls.key").unlink()
    with pytest.raises(BadConfig, match=r"cannot be read: .*tls\.key: No such file"):
        served.refresh()
    written(tmp_path, second.certificate, second.key)
    assert served.refresh()
    assert shown(served) == second.certificate


def test_a_key_that_needs_a_password_is_refused_without_a_prompt(tmp_path: Path) -> None:
    first = fresh()
    locked = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END ENCRYPTED PRIVATE KEY-----\n"
    with pytest.raises(BadConfig, match="is encrypted"):
        ServerCertificate(*written(tmp_path, first.certificate, locked))
