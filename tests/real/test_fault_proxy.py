"""The proxy that plays faults leaves nothing behind."""

from __future__ import annotations

import gc
import json
import socket
import ssl
from pathlib import Path

from tests.real.certificates import write_certificates
from tests.real.control_plane import ControlPlane
from tests.real.fault_proxy import proxied


def test_a_stopped_client_does_not_keep_the_proxy_alive(tmp_path: Path) -> None:
    """What is left open is a warning, and so a failure of whichever test comes next."""
    write_certificates(tmp_path)
    authority = tmp_path / "ca.crt"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"clusters": [{"cluster": {}}]}))
    plane = ControlPlane(
        url="https://127.0.0.1:1",
        ca_file=authority,
        token="",
        guest_token="",
        kubeconfig=kubeconfig,
        etcd_url="",
        has_controllers=False,
    )
    context = ssl.create_default_context(cafile=str(authority))
    with proxied(plane, tmp_path / "behind") as (proxy, _):
        stopped = context.wrap_socket(
            socket.create_connection(("127.0.0.1", proxy.port)), server_hostname="127.0.0.1"
        )
        stopped.send(b"GET / HTTP/1.1\r\n")  # it neither ends its request nor reads
    del proxy
    gc.collect()  # raises here, not later
    stopped.close()
