"""The web page of `unisono controller` on a real API server: people see what they may list."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real.cluster import account, put, replica, until
from tests.real.control_plane import ControlPlane
from tools.browser import browsing, find_browser

pytestmark = [pytest.mark.real, pytest.mark.slow]

_KUEUE = "kueue.x-k8s.io/v1beta2"
_RBAC = "rbac.authorization.k8s.io/v1"
_HOME = "unisono-system"


@dataclass(frozen=True)
class Page:
    """Where it is, and the tokens of people."""

    address: str
    tokens: dict[str, str]

    def ask(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        """Return the code, the cookie that is set, and the first line."""
        request = urllib.request.Request(f"{self.address}{path}", method=method)
        for name, value in headers.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                line = answer.readline().decode()
                return answer.status, answer.headers.get("Set-Cookie", ""), line
        except urllib.error.HTTPError as error:
            return error.code, "", error.read().decode()

    def show(self, user: str, page: str) -> dict[str, Any]:
        """Return a page as a user sees it, signed in by cookie."""
        token = f"Bearer {self.tokens[user]}"
        code, cookie, _ = self.ask("session", method="POST", Authorization=token)
        assert code == 200
        assert "HttpOnly; SameSite=Strict" in cookie
        code, _, line = self.ask(f"live?page={page}", Cookie=cookie.partition(";")[0])
        assert code == 200
        found: dict[str, Any] = json.loads(line)
        return found


@pytest.fixture(scope="module")
def page(deployed: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Have a workload in each of two namespaces, and our controller there."""
    folder = tmp_path_factory.mktemp("web-cluster")
    put(deployed, *_objects())
    for name in ("root", "lee"):
        put(deployed, _named("v1", "ServiceAccount", name, "team-a"))
    tokens = {name: _token(deployed, name, folder) for name in ("root", "lee")}
    role = account(deployed, _HOME, "unisono", folder / "role")
    with replica(role, folder / "log", "--namespace", _HOME, "--web", "127.0.0.1:0") as one:
        found = Page(one.until_told("web page")["address"], tokens)
        until("both are known", lambda: len(found.show("root", "workloads")["order"]) == 2)
        yield found


def _token(plane: ControlPlane, name: str, folder: Path) -> str:
    config = json.loads(account(plane, "team-a", name, folder / name).kubeconfig.read_text())
    return str(config["users"][0]["user"]["token"])


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _objects() -> Iterator[dict[str, Any]]:
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": 8}]
    groups = [
        {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "any", "resources": quota}]}
    ]
    yield _named(_KUEUE, "ResourceFlavor", "any")
    yield _named(_KUEUE, "ClusterQueue", "all") | {
        "spec": {"namespaceSelector": {}, "resourceGroups": groups}
    }
    for team in ("team-a", "team-b"):
        yield _named("v1", "Namespace", team)
        yield _named(_KUEUE, "LocalQueue", "q", team) | {"spec": {"clusterQueue": "all"}}
        job = _named("batch/v1", "Job", f"secret-of-{team}", team)
        job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
        limits = {"limits": {"nvidia.com/gpu": "16"}}
        container = {"name": "main", "image": "train:1", "resources": limits}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        yield job | {"spec": {"suspend": True, "template": template}}
    rule = {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["list"]}
    yield _named(_RBAC, "Role", "gangs", "team-a") | {"rules": [rule]}
    yield _named(_RBAC, "RoleBinding", "lee", "team-a") | _bound("Role", "gangs", "lee")
    yield _named(_RBAC, "ClusterRoleBinding", "root") | _bound(
        "ClusterRole", "cluster-admin", "root"
    )


def _bound(kind: str, role: str, account: str) -> dict[str, Any]:
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "team-a"}],
    }


def test_a_user_who_may_list_everything_sees_everything(page: Page) -> None:
    assert {key.partition("/")[0] for key in page.show("root", "workloads")["order"]} == {
        "team-a",
        "team-b",
    }
    assert page.show("root", "queues")["order"] == ["all"]
    assert page.show("root", "overview")["head"]["gpus"]["wanted"] == 32


def test_others_see_what_they_may_list_and_no_names_besides(page: Page) -> None:
    assert [key.partition("/")[0] for key in page.show("lee", "workloads")["order"]] == ["team-a"]
    assert page.show("lee", "queues")["head"] == {"denied": "list clusterqueues.kueue.x-k8s.io"}
    assert page.show("lee", "nodes")["head"] == {"denied": "list nodes"}
    for one in ("overview", "workloads", "timeline", "map"):
        assert "secret-of-team-b" not in json.dumps(page.show("lee", one))
    code, _, _ = page.ask(
        "report/csv?since=1&until=2", Authorization=f"Bearer {page.tokens['lee']}"
    )
    assert code == 403


def test_strangers_see_nothing(page: Page) -> None:
    assert page.ask("live?page=overview")[0] == 401
    assert page.ask("live?page=overview", Authorization="Bearer made.up.token")[0] == 401
    assert page.ask("session", method="POST", Authorization="Bearer made.up.token")[0] == 401


def test_people_sign_in_with_a_token_of_the_cluster(page: Page, tmp_path: Path) -> None:
    if find_browser() is None:
        pytest.skip("there is no Chromium here (Debian: chromium)")

    async def main() -> None:
        async with browsing(tmp_path) as tab:
            await tab.go(f"{page.address}#/workloads")
            await tab.until("document.getElementById('token')")
            assert "kubectl create token" in await tab.run("document.body.innerText")
            await tab.write(page.tokens["lee"])
            await tab.press("Enter")
            await tab.until("document.body.innerText.includes('secret-of-team-a')")
            assert await tab.run("document.cookie + sessionStorage.length") == "0"
            assert not tab.errors

    asyncio.run(main())
