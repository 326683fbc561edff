"""Credentials: kept fresh, asked for once, and never blocking (scenario 26)."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.kube.real_time import RealClock
from tests.kube.virtual import VirtualClock, run
from unisono.kube.credentials import Credentials, ask_plugin
from unisono.kube.errors import BadConfig, LoginFailed
from unisono.kube.kubeconfig import Access, ExecPlugin, Login

V1 = "client.authentication.k8s.io/v1"
PLUGIN = ExecPlugin(command="login", args=("token",), env={"A": "b"}, api_version=V1)


class Program:
    """A login program that takes a second and gives token-1, token-2, …"""

    def __init__(self, *, lives_s: float | None = None, **status: str) -> None:
        self.calls: list[tuple[tuple[str, ...], Mapping[str, str], bool]] = []
        self._lives_s = lives_s
        self._status = status
        self.raw: bytes | None = None
        self.code = 0

    async def __call__(
        self, command: tuple[str, ...], env: Mapping[str, str], *, interactive: bool
    ) -> tuple[int, bytes, bytes]:
        self.calls.append((command, env, interactive))
        await asyncio.sleep(1)
        status: dict[str, Any] = {"token": f"token-{len(self.calls)}", **self._status}
        if self._lives_s is not None:
            expires = datetime.fromtimestamp(VirtualClock().now() + self._lives_s, UTC)
            status["expirationTimestamp"] = expires.isoformat().replace("+00:00", "Z")
        answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        return self.code, self.raw or orjson.dumps(answer), b"the reason"


def credentials(login: Login, run: Any = None, server: str = "https://kube") -> Credentials:
    access = Access(server=server, login=login)
    options: dict[str, Any] = {} if run is None else {"run": run}
    return Credentials(access, clock=VirtualClock(), environ={"PATH": "/bin"}, **options)


async def header(made: Credentials) -> str:
    return dict((await made.proof()).headers).get("Authorization", "")


# --- what is shown ------------------------------------------------------------------------------


def test_tokens_passwords_and_anonymous() -> None:
    async def main() -> None:
        assert await header(credentials(Login(token="t"))) == "Bearer t"
        pair = base64.b64encode(b"jane:secret").decode()
        login = Login(username="jane", password="secret")
        assert await header(credentials(login)) == f"Basic {pair}"
        assert await header(credentials(Login())) == ""

    run(main())


def test_nothing_secret_goes_over_an_open_wire() -> None:
    async def main() -> None:
        login = Login(token="t", impersonation=(("Impersonate-User", "jane"),))
        proof = await credentials(login, server="http://localhost:8001").proof()
        assert proof.headers == (("Impersonate-User", "jane"),)

    run(main())


def test_files_are_read_again_after_a_minute(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")

    async def main() -> None:
        made = credentials(Login(token_file=token))
        assert await header(made) == "Bearer one"
        token.write_text("two\n")
        await VirtualClock().sleep(59)
        assert await header(made) == "Bearer one"
        await VirtualClock().sleep(2)
        assert await header(made) == "Bearer two"

    run(main())


def test_a_refused_token_file_is_read_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")

    async def main() -> None:
        made = credentials(Login(token_file=token))
        old = await made.proof()
        assert await made.renewed(old) is None, "there is no other"
        token.write_text("two")
        other = await made.renewed(await made.proof())
        assert other is not None
        assert dict(other.headers)["Authorization"] == "Bearer two"

    run(main())


def test_certificates_and_keys_come_in_pairs(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(BadConfig, match="needs its key"):
            await credentials(Login(certificate=b"c")).proof()
        with pytest.raises(BadConfig, match="cannot be read"):
            await credentials(Login(certificate=tmp_path / "missing", key=b"k")).proof()
        proof = await credentials(Login(certificate=b"c", key=b"k")).proof()
        assert (proof.certificate, proof.key) == (b"c", b"k")

    run(main())


# --- exec plugins -------------------------------------------------------------------------------


def test_scenario_26_a_token_of_15_minutes_is_renewed_and_the_program_runs_twice() -> None:
    program = Program(lives_s=900)

    async def main() -> None:
        made = credentials(Login(plugin=PLUGIN), program)
        assert await header(made) == "Bearer token-1"
        for _ in range(13):
            await VirtualClock().sleep(60)
            assert await header(made) == "Bearer token-1"
        await VirtualClock().sleep(180)  # 16 minutes
        assert await header(made) == "Bearer token-2"
        assert len(program.calls) == 2

    run(main())


def test_a_token_is_renewed_a_minute_before_its_end() -> None:
    program = Program(lives_s=900)

    async def main() -> None:
        made = credentials(Login(plugin=PLUGIN), program)
        await made.proof()
        await VirtualClock().sleep(838)
        assert await header(made) == "Bearer token-1"
        await VirtualClock().sleep(3)
        assert await header(made) == "Bearer token-2"

    run(main())


def test_concurrent_requests_start_the_program_once_and_the_loop_goes_on() -> None:
    program = Program()

    async def main() -> None:
        made = credentials(Login(plugin=PLUGIN), program)
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            for _ in range(9):
                await VirtualClock().sleep(0.1)
                ticks += 1

        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(made.proof()) for _ in range(20)]
            group.create_task(tick())
            await VirtualClock().sleep(0.95)
            assert ticks == 9, "while the program runs"
        assert len({task.result() for task in asked}) == 1
        assert len(program.calls) == 1

    run(main())


def test_a_token_without_an_end_is_good_until_it_is_refused() -> None:
    program = Program()

    async def main() -> None:
        made = credentials(Login(plugin=PLUGIN), program)
        first = await made.proof()
        await VirtualClock().sleep(100_000)
        assert await header(made) == "Bearer token-1"
        # By now the proof has been made anew many times, but it says the same.
        other = await made.renewed(first)
        assert other is not None
        assert dict(other.headers)["Authorization"] == "Bearer token-2"
        assert len(program.calls) == 2

    run(main())


def test_one_refusal_is_one_renewal() -> None:
    program = Program()

    async def main() -> None:
        made = credentials(Login(plugin=PLUGIN), program)
        old = await made.proof()
        async with asyncio.TaskGroup() as group:
            several = [group.create_task(made.renewed(old)) for _ in range(5)]
        assert len({task.result() for task in several}) == 1
        assert len(program.calls) == 2

    run(main())


def test_the_program_is_told_about_the_cluster_only_if_it_wants() -> None:
    program = Program()
    curious = ExecPlugin(command="login", api_version=V1, cluster={"server": "https://kube"})

    async def main() -> None:
        await credentials(Login(plugin=PLUGIN), program).proof()
        await credentials(Login(plugin=curious), program).proof()

    run(main())
    (command, env, interactive), (_, other, _) = program.calls
    assert command == ("login", "token")
    assert not interactive
    assert (env["PATH"], env["A"]) == ("/bin", "b")
    told = {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}
    assert orjson.loads(env["KUBERNETES_EXEC_INFO"]) == told
    spec = orjson.loads(other["KUBERNETES_EXEC_INFO"])["spec"]
    assert spec["cluster"] == {"server": "https://kube"}


def test_a_program_may_give_a_certificate() -> None:
    program = Program(token="", clientCertificateData="CERT", clientKeyData="KEY")

    async def main() -> None:
        proof = await credentials(Login(plugin=PLUGIN), program).proof()
        assert (proof.certificate, proof.key, proof.headers) == (b"CERT", b"KEY", ())

    run(main())


@pytest.mark.parametrize(
    ("mode", "terminal", "interactive"),
    [
        ("Never", True, False),
        ("IfAvailable", True, True),
        ("IfAvailable", False, False),
        ("Always", True, True),
    ],
)
def test_a_person_is_asked_only_if_there_is_one(
    mode: str, terminal: bool, interactive: bool
) -> None:
    program = Program()
    plugin = ExecPlugin(command="login", api_version=V1, interactive_mode=mode)

    async def main() -> None:
        await ask_plugin(
            plugin, clock=VirtualClock(), environ={}, interactive=terminal, run=program
        )

    run(main())
    assert program.calls[0][2] is interactive


def error(plugin: ExecPlugin, program: Any) -> Exception:
    async def main() -> Exception:
        with pytest.raises((BadConfig, LoginFailed)) as caught:
            await credentials(Login(plugin=plugin), program).proof()
        return caught.value

    return run(main())


def answer(**changes: Any) -> bytes:
    return orjson.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": {}, **changes})


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"Please log in", "no ExecCredential"),
        (answer(kind="Pod"), "printed Pod"),
        (answer(apiVersion="client.authentication.k8s.io/v1beta1"), "was expected"),
        (answer(), "neither a token nor"),
        (answer(status={"clientCertificateData": "x"}), "without key"),
    ],
)
def test_what_a_program_prints_is_checked(raw: bytes, words: str) -> None:
    program = Program()
    program.raw = raw
    assert words in str(error(PLUGIN, program))


def test_what_a_failing_program_says_is_shown() -> None:
    program = Program()
    program.code = 3
    assert "exit code 3: the reason" in str(error(PLUGIN, program))


def test_plugins_that_cannot_work_say_why() -> None:
    old = ExecPlugin(command="x", api_version="client.authentication.k8s.io/v1alpha1")
    assert "is not one of" in str(error(old, Program()))
    always = ExecPlugin(command="x", api_version=V1, interactive_mode="Always")
    assert "no terminal" in str(error(always, Program()))

    async def never(*_: Any, **__: Any) -> tuple[int, bytes, bytes]:
        await asyncio.sleep(10_000)
        return 0, b"", b""

    assert "within 60 s" in str(error(PLUGIN, never))


# --- real programs ------------------------------------------------------------------------------


def real(command: str, *args: str, hint: str = "") -> Any:
    plugin = ExecPlugin(command=command, args=args, api_version=V1, install_hint=hint)
    return asyncio.run(_ask(plugin))


async def _ask(plugin: ExecPlugin) -> Any:
    return await ask_plugin(plugin, clock=RealClock(), environ=os.environ)


def test_a_real_program_is_run_without_a_shell() -> None:
    script = (
        "import json, os, sys; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']); "
        "print(json.dumps({**info, 'status': {'token': sys.argv[1] + sys.stdin.read()}}))"
    )
    assert real(sys.executable, "-c", script, "$HOME; *").token == "$HOME; *"


def test_a_real_program_that_is_not_there_comes_with_its_hint() -> None:
    with pytest.raises(BadConfig, match=r"not installed; pip install it"):
        real("no-such-program-anywhere", hint="pip install it")


def test_a_real_program_that_fails() -> None:
    with pytest.raises(LoginFailed, match="exit code 4: sorry"):
        real(sys.executable, "-c", "import sys; sys.exit(print('sorry', file=sys.stderr) or 4)")
