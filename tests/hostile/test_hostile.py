"""Hostile objects beside an innocent job: a few every time, twenty thousand in `make test-all`.

To see one again: `python -m tests.hostile --seed N`, or `--named NAME` (CONTRIBUTING.md). They run
in a process of their own, which forks for every case.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping

import orjson
import pytest

from tests.control.stories import namespace
from tests.hostile.bases import base_of
from tests.hostile.cases import case_of, creating, every_field, path_of
from tests.hostile.fields import fields_of, kinds
from tests.hostile.named import NAMED, ROWS
from tests.hostile.stage import ADMIN
from tests.support.control_world import World
from unisono.apiserver.request import Request

# Numbers of drawn cases that take a few seconds together.
QUICK = 22
# Named cases that break a promise today, and what is to be done about it.
KNOWN: Mapping[str, str] = {}
# Kinds whose right object needs another object first.
_NEEDS_MORE = frozenset({"Binding"})


def run(*arguments: str) -> None:
    """Run cases by the command that people use; say all that it said if a promise was broken."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason=KNOWN[name], strict=True))
        if name in KNOWN
        else name
        for name in NAMED
    ],
)
def test_a_named_case_harms_nothing_else(name: str) -> None:
    run("--named", name)


def test_the_rows_that_were_once_found_harm_nothing_else() -> None:
    run("--named", *(name for name in ROWS if name not in KNOWN))


def test_a_few_drawn_cases_harm_nothing_else() -> None:
    run("--cases", str(QUICK))


@pytest.mark.slow
def test_every_field_of_every_kind_is_drawn_once() -> None:
    drawn = {(one.kind.api_version, one.kind.kind, one.path) for one in every_field()}
    assert {kind for _, kind, _ in drawn} == {kind.kind for kind in kinds()}
    for kind in kinds():
        for field in fields_of(kind):
            is_elsewhere = field.is_of_a_pod and (field.sort == "text" or not kind.is_storage)
            if not is_elsewhere:
                assert (kind.api_version, kind.kind, field.path) in drawn


@pytest.mark.slow
def test_a_number_is_always_the_same_case() -> None:
    assert case_of(17) == case_of(17)


@pytest.mark.slow
def test_the_right_object_of_every_kind_is_accepted() -> None:
    refused: dict[str, str] = {}

    async def story() -> None:
        async with World().running() as world:
            await world.create(namespace("noisy"))
            for kind in kinds():
                request = Request(
                    method="POST",
                    path=path_of(kind),
                    query={"dryRun": "All"},
                    headers={"content-type": "application/json"},
                    body=creating(kind, base_of(kind)).body,
                    user=ADMIN,
                )
                answer = await world.api.handle(request)
                if answer.code >= 300 and kind.kind not in _NEEDS_MORE:
                    said = orjson.loads(answer.body)["message"]
                    refused[f"{kind.api_version} {kind.kind}"] = said

    asyncio.run(story())
    assert refused == {}
