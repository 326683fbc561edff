"""Certificates from a process of its own: the same files, the same refusals."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from unisono.apiserver.access.certify import CannotCertify, Made, certificates
from unisono.apiserver.access.credential_files import Exposed

NOW = 1_767_258_000.0


def made_in(folder: Path) -> Made:
    return asyncio.run(certificates(folder, now=NOW, hosts=("127.0.0.1", "localhost")))


def test_they_can_be_used_and_stay(tmp_path: Path) -> None:
    made = made_in(tmp_path / "tls")
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made.chain, made.key)
    before = made.chain.read_bytes()
    assert made_in(tmp_path / "tls") == made
    assert made.chain.read_bytes() == before


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    made = made_in(tmp_path / "tls")
    made.key.chmod(0o644)
    with pytest.raises(Exposed, match=r"server\.key"):
        made_in(tmp_path / "tls")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("not a folder")
    with pytest.raises(CannotCertify, match="tls"):
        made_in(tmp_path / "tls")
