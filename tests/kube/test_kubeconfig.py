"""Where the cluster is: kubeconfig files, their order, their certificates, and pods."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from unisono.kube.errors import BadConfig
from unisono.kube.kubeconfig import Access, find_access


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(
    *,
    server: str = "https://one:6443",
    context: str = "c",
    user: dict[str, Any] | None = None,
    **cluster: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": "k", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def access(tmp_path: Path, **options: Any) -> Access:
    return find_access(path=write(tmp_path / "config", config(**options)), environ={})


def nowhere(tmp_path: Path, **environ: str) -> Access:
    return find_access(environ=environ, home=tmp_path, service_account=tmp_path / "sa")


# --- which file ---------------------------------------------------------------------------------


def test_a_path_wins_over_everything(tmp_path: Path) -> None:
    given = write(tmp_path / "given", config(server="https://given"))
    other = write(tmp_path / "other", config(server="https://other"))
    found = find_access(path=given, environ={"KUBECONFIG": str(other)}, home=tmp_path)
    assert found.server == "https://given"


def test_the_first_definition_of_a_name_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "first", config(server="https://first", context=""))
    second = config(server="https://second", context="d")
    second["contexts"] += [
        {"name": "d", "context": {"cluster": "other", "user": "u", "namespace": "ns"}},
    ]
    second["clusters"] += [{"name": "other", "cluster": {"server": "https://other"}}]
    paths = f"{first}:{tmp_path / 'missing'}:{write(tmp_path / 'second', second)}"
    found = nowhere(tmp_path, KUBECONFIG=paths)
    assert (found.server, found.namespace) == ("https://other", "ns")
    found = find_access(context="c", environ={"KUBECONFIG": paths})
    assert (found.server, found.namespace) == ("https://first", "default")


def test_the_usual_place(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", config(server="https://home"))
    assert nowhere(tmp_path, KUBECONFIG="").server == "https://home"
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert nowhere(tmp_path, **inside).server == "https://home", "before the pod's own"


def test_in_a_pod(tmp_path: Path) -> None:
    directory = tmp_path / "sa"
    directory.mkdir()
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    with pytest.raises(BadConfig, match="service account mounted"):
        nowhere(tmp_path, **inside)
    for name in ("token", "ca.crt", "namespace"):
        (directory / name).write_text(f"the {name}\n")
    found = nowhere(tmp_path, **inside)
    assert found.server == "https://[fd00::1]:6443"
    assert found.namespace == "the namespace"
    assert found.authority == directory / "ca.crt"
    assert found.login.token_file == directory / "token"


def test_no_cluster_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="unisono up"):
        nowhere(tmp_path)
    with pytest.raises(BadConfig, match="does not exist"):
        nowhere(tmp_path, KUBECONFIG="/not/there")


# --- what it says -------------------------------------------------------------------------------


def test_inline_data_and_files(tmp_path: Path) -> None:
    found = access(
        tmp_path,
        user={
            "client-certificate-data": encoded("cert"),
            "client-key": "keys/client.key",
            "tokenFile": "/abs/token",
            "token": "ignored",
        },
        **{
            "certificate-authority": "ca.crt",
            "tls-server-name": "kube.example",
            "insecure-skip-tls-verify": True,
            "proxy-url": "http://proxy:3128",
        },
    )
    assert found.authority == tmp_path / "ca.crt"
    assert found.login.certificate == b"cert"
    assert found.login.key == tmp_path / "keys" / "client.key"
    assert (found.login.token, found.login.token_file) == ("", Path("/abs/token"))
    assert (found.server_name, found.skip_verify) == ("kube.example", True)
    assert found.proxy == "http://proxy:3128"


def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    options = {"certificate-authority": "a", "certificate-authority-data": encoded("inline")}
    assert access(tmp_path, **options).authority == b"inline"


def test_impersonation(tmp_path: Path) -> None:
    user = {
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["g1", "g2"],
        "as-user-extra": {"scopes": ["view"]},
    }
    assert access(tmp_path, user=user).login.impersonation == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-scopes", "view"),
    )


def test_exec_plugins(tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./bin/login",
        "args": ["token"],
        "env": [{"name": "A", "value": "b"}],
        "provideClusterInfo": True,
        "interactiveMode": "Never",
        "installHint": "get it",
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    found = access(
        tmp_path,
        user={"exec": plugin},
        **{"certificate-authority-data": encoded("ca"), "extensions": [extension]},
    ).login.plugin
    assert found is not None
    assert found.command == str(tmp_path / "bin" / "login")
    assert (found.args, found.env) == (("token",), {"A": "b"})
    assert found.interactive_mode == "Never"
    assert found.cluster == {
        "server": "https://one:6443",
        "certificate-authority-data": encoded("ca"),
        "config": {"audience": "x"},
    }
    plugin.update(command="login", provideClusterInfo=False)
    found = access(tmp_path, user={"exec": plugin}).login.plugin
    assert found is not None
    assert (found.command, found.cluster) == ("login", None), "found on the PATH"


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        ("https://kube.example:6443", {"HTTPS_PROXY": "http://p"}, "http://p"),
        ("https://kube.example:6443", {"https_proxy": "http://p"}, "http://p"),
        ("http://kube.example", {"HTTPS_PROXY": "http://p"}, ""),
        ("https://kube.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "a,.example"}, ""),
        ("https://kube.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "ample"}, "http://p"),
        ("https://10.1.2.3:443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}, ""),
        ("https://10.1.2.3:443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p"}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p"}, ""),
        ("https://localhost", {"HTTPS_PROXY": "http://p"}, ""),
    ],
)
def test_proxies_of_the_environment(
    tmp_path: Path, server: str, environ: dict[str, str], proxy: str
) -> None:
    path = write(tmp_path / "config", config(server=server))
    assert find_access(path=path, environ=environ).proxy == proxy


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"current-context": ""}, "current-context is not set"),
        ({"current-context": "x"}, "no context 'x'; there are: c"),
        ({"contexts": None}, "there are: none"),
        ({"clusters": []}, "unknown cluster 'k'"),
        ({"users": None}, "unknown user 'u'"),
        ({"clusters": [{"name": "k", "cluster": {}}]}, "'k' has no server"),
        ({"clusters": [{"name": "k", "cluster": {"server": "one:6443"}}]}, "neither https"),
        (
            {
                "clusters": [
                    {
                        "name": "k",
                        "cluster": {"server": "https://a", "certificate-authority-data": "!"},
                    }
                ]
            },
            "authority-data is not base64",
        ),
        (
            {"users": [{"name": "u", "user": {"auth-provider": {"name": "gcp"}}}]},
            "'gcp' was removed",
        ),
        ({"users": [{"name": "u", "user": {"token": 7}}]}, "not a kubeconfig"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = write(tmp_path / "config", {**config(), **change})
    with pytest.raises(BadConfig, match=words) as caught:
        find_access(path=path, environ={})
    assert str(path) in str(caught.value)


def test_files_that_are_no_yaml_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("a: [")
    with pytest.raises(BadConfig, match="is not YAML"):
        find_access(path=tmp_path / "bad", environ={})
    with pytest.raises(BadConfig, match="No such file"):
        find_access(path=tmp_path / "missing", environ={})
    (tmp_path / "empty").write_text("")
    with pytest.raises(BadConfig, match="current-context"):
        find_access(path=tmp_path / "empty", environ={})
