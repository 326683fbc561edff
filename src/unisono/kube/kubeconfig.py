"""Where the cluster is and as which user to reach it: kubeconfig files, or the pod that we run in.

Looked for in this order: the path that was given; the files that `KUBECONFIG` lists, where the
first file that defines a name wins; `~/.kube/config`; the service account of our pod (kube-api.md,
4.2).

Files are read here, their certificates and tokens are not: those change while we run, and
`credentials` reads them again.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import msgspec
import yaml

from unisono.kube.errors import BadConfig

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# A certificate or key: the text itself, or a file that may change.
Pem = bytes | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that logs us in."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    api_version: str
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None  # what it is told about the cluster, if it wants that


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The user and its credentials."""

    token: str = ""
    token_file: Path | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    username: str = ""
    password: str = ""
    plugin: ExecPlugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()  # headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything needed to reach one cluster as one user."""

    server: str
    namespace: str = "default"
    authority: Pem | None = None
    skip_verify: bool = False
    server_name: str = ""
    proxy: str = ""
    login: Login = Login()


# --- the files as they are written ----------------------------------------------------------------


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] | None = None


class _EnvEntry(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, frozen=True, rename="camel"):
    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[_EnvEntry] | None = None
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


# --- finding --------------------------------------------------------------------------------------


def find_access(
    *,
    path: Path | None = None,
    context: str = "",
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Find the cluster to speak to; raises BadConfig, which says what is missing."""
    if path is not None:
        return _from_files([_read(path)], context, environ)
    listed = [Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if listed:
        present = [each for each in listed if each.exists()]
        if not present:
            raise BadConfig(f"KUBECONFIG names {environ['KUBECONFIG']}, which does not exist")
        return _from_files([_read(each) for each in present], context, environ)
    usual = (Path.home() if home is None else home) / ".kube" / "config"
    if usual.exists():
        return _from_files([_read(usual)], context, environ)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environ, service_account)
    raise BadConfig(
        f"no cluster to speak to: set KUBECONFIG, or write {usual}, or start one with `unisono up`"
    )


def _in_cluster(environ: Mapping[str, str], directory: Path) -> Access:
    host = environ["KUBERNETES_SERVICE_HOST"]
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    token = directory / "token"
    if not token.exists():
        raise BadConfig(f"{token} does not exist; is a service account mounted into this pod?")
    namespace = directory / "namespace"
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        authority=directory / "ca.crt",
        login=Login(token_file=token),
    )


@dataclass(frozen=True, slots=True)
class _ReadFile:
    path: Path
    content: _File


def _read(path: Path) -> _ReadFile:
    try:
        raw = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise BadConfig(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise BadConfig(f"{path}: is not YAML: {error}") from error
    try:
        return _ReadFile(path, msgspec.convert(raw or {}, _File))
    except msgspec.ValidationError as error:
        raise BadConfig(f"{path}: is not a kubeconfig: {error}") from error


def _from_files(files: list[_ReadFile], context: str, environ: Mapping[str, str]) -> Access:
    """Merge files (the first that defines a name wins) and follow a context."""
    chosen = context or next(
        (each.content.current_context for each in files if each.content.current_context), ""
    )
    names = " and ".join(str(each.path) for each in files)
    if not chosen:
        raise BadConfig(f"{names}: current-context is not set; choose one with --context")
    contexts = {name: found for name, found, _ in _named(files, "contexts")}
    if chosen not in contexts:
        there = ", ".join(sorted(contexts)) or "none"
        raise BadConfig(f"{names}: there is no context {chosen!r}; there are: {there}")
    followed: _Context = contexts[chosen]
    clusters = {name: (found, path) for name, found, path in _named(files, "clusters")}
    if followed.cluster not in clusters:
        raise BadConfig(
            f"{names}: context {chosen!r} names the unknown cluster {followed.cluster!r}"
        )
    users = {name: (found, path) for name, found, path in _named(files, "users")}
    if followed.user and followed.user not in users:
        raise BadConfig(f"{names}: context {chosen!r} names the unknown user {followed.user!r}")
    user = users.get(followed.user, (None, Path()))
    return _access(followed, clusters[followed.cluster], user, environ)


def _named(files: list[_ReadFile], what: str) -> Iterable[tuple[str, Any, Path]]:
    """Yield name, entry and file; later definitions of a name are left out."""
    seen = set()
    for each in files:
        for entry in getattr(each.content, what) or ():
            if entry.name not in seen:
                seen.add(entry.name)
                yield entry.name, getattr(entry, what.removesuffix("s")), each.path


def _access(
    context: _Context,
    cluster_in: tuple[_Cluster, Path],
    user_in: tuple[_User | None, Path],
    environ: Mapping[str, str],
) -> Access:
    cluster, path = cluster_in
    if not cluster.server:
        raise BadConfig(f"{path}: cluster {context.cluster!r} has no server")
    server = cluster.server.rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise BadConfig(f"{path}: server {server!r} is neither https:// nor http://")
    authority = _pem(
        path, cluster.certificate_authority_data, cluster.certificate_authority, "authority"
    )
    user, user_path = user_in
    return Access(
        server=server,
        namespace=context.namespace or "default",
        authority=authority,
        skip_verify=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url or _environment_proxy(server, environ),
        login=Login() if user is None else _login(user, user_path, cluster, authority),
    )


def _login(user: _User, path: Path, cluster: _Cluster, authority: Pem | None) -> Login:
    if user.auth_provider is not None and user.exec is None:
        name = user.auth_provider.get("name", "")
        raise BadConfig(
            f"{path}: auth-provider {name!r} was removed from Kubernetes in 1.26; "
            "use the exec plugin of your provider"
        )
    return Login(
        # kubectl, too, lets the file win over the text.
        token="" if user.token_file else user.token,
        token_file=_beside(path, user.token_file) if user.token_file else None,
        certificate=_pem(
            path, user.client_certificate_data, user.client_certificate, "client-certificate"
        ),
        key=_pem(path, user.client_key_data, user.client_key, "client-key"),
        username=user.username,
        password=user.password,
        plugin=None if user.exec is None else _plugin(user.exec, path, cluster, authority),
        impersonation=tuple(_impersonation(user)),
    )


def _plugin(plugin: _Exec, path: Path, cluster: _Cluster, authority: Pem | None) -> ExecPlugin:
    command = plugin.command
    if os.sep in command:
        command = str(_beside(path, command))
    return ExecPlugin(
        command=command,
        args=tuple(plugin.args or ()),
        env={each.name: each.value for each in plugin.env or ()},
        api_version=plugin.api_version,
        interactive_mode=plugin.interactive_mode,
        install_hint=plugin.install_hint,
        cluster=_exec_cluster(cluster, authority) if plugin.provide_cluster_info else None,
    )


def _exec_cluster(cluster: _Cluster, authority: Pem | None) -> dict[str, Any]:
    """Describe the cluster as an exec plugin is told of it."""
    described: dict[str, Any] = {"server": cluster.server, "config": None}
    if cluster.tls_server_name:
        described["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        described["insecure-skip-tls-verify"] = True
    if authority is not None:
        content = authority.read_bytes() if isinstance(authority, Path) else authority
        described["certificate-authority-data"] = base64.b64encode(content).decode()
    if cluster.proxy_url:
        described["proxy-url"] = cluster.proxy_url
    for extension in cluster.extensions or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            described["config"] = extension.get("extension")
    return described


def _impersonation(user: _User) -> Iterable[tuple[str, str]]:
    if not user.as_user:
        return
    yield "Impersonate-User", user.as_user
    if user.as_uid:
        yield "Impersonate-Uid", user.as_uid
    for group in user.as_groups or ():
        yield "Impersonate-Group", group
    for key, values in (user.as_user_extra or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{key}", value


def _pem(path: Path, inline: str, file: str, what: str) -> Pem | None:
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except binascii.Error as error:
            raise BadConfig(f"{path}: {what}-data is not base64: {error}") from error
    return _beside(path, file) if file else None


def _beside(path: Path, name: str) -> Path:
    """Return a file named in a kubeconfig: relative names start where the kubeconfig is."""
    return path.absolute().parent / name


def _environment_proxy(server: str, environ: Mapping[str, str]) -> str:
    """Return the proxy that HTTPS_PROXY and NO_PROXY ask for, as kubectl does."""
    scheme, _, rest = server.partition("://")
    host = rest.partition("/")[0]
    if _is_loopback(_host_name(host)):
        return ""
    names = {name.lower(): value for name, value in environ.items() if value}
    excepted = [each.strip() for each in names.get("no_proxy", "").split(",") if each.strip()]
    if any(_is_excepted(_host_name(host), each) for each in excepted):
        return ""
    return names.get(f"{scheme}_proxy", "")


def _is_excepted(name: str, exception: str) -> bool:
    """Say whether an entry of NO_PROXY means a host: a name, a domain, an address, a network."""
    if exception == "*":
        return True
    try:
        return ip_address(name) in ip_network(exception, strict=False)
    except ValueError:  # one of them is a name
        domain = exception.removeprefix("*").removeprefix(".")
        return name == domain or name.endswith(f".{domain}")


def _is_loopback(name: str) -> bool:
    return name in ("localhost", "::1") or name.startswith("127.")


def _host_name(host: str) -> str:
    """Return a host without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
