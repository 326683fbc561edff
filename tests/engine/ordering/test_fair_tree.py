"""Fair Tree: the reference numbers, and any tree against the plainest walk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.priority_builders import MORE_OF_THE_TREE, TREE, usage_of
from unisono.engine.model.multifactor import Association, MultifactorRules
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.fair_share import Floats, level_shares, ranks, slurm_ranks

# Slurm's own usage of the reference cluster, before it was cut off for display.
D = 1 - 0.693 / 1800
GAMES, NEWS, MAIL = 5512 * D**26, 416 * D**73, 321.762


def shares(
    tree: tuple[Association, ...], used: Mapping[tuple[str, str], float]
) -> tuple[Accounts, Floats]:
    accounts = Accounts(MultifactorRules(associations=tree))
    return accounts, level_shares(accounts, usage_of(accounts, used))


def by_user(accounts: Accounts, fair: Floats) -> dict[str, float]:
    return {
        str(spec.user): float(fair[number])
        for number, spec in enumerate(accounts.specs)
        if spec.user is not None
    }


def test_six_users_in_four_accounts() -> None:
    used = {("prod", "mail"): MAIL, ("prod", "news"): NEWS, ("vision", "games"): GAMES}
    accounts, level = shares(TREE, used)
    wanted = {
        "account/prod": 3.371984,
        "account/research": 0.673117,
        "account/vision": 0.75,
        "user/vision/games": 0.25,
        "user/prod/mail": 1.128521,
        "user/prod/news": 0.897759,
    }
    found = {accounts.owner(number): value for number, value in enumerate(level)}
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, abs=2e-5)
    assert np.isinf(found["user/vision/man"])
    assert np.isinf(found["user/nlp/lp"])
    sixths = {"root": 6, "mail": 5, "news": 4, "lp": 3, "man": 2, "games": 1}
    for rank in (ranks, slurm_ranks):
        fair = by_user(accounts, rank(accounts, level))
        assert fair == {user: sixth / 6 for user, sixth in sixths.items()}


def test_equal_accounts_are_one_as_documented_and_two_as_slurm_has_it() -> None:
    used = {("ta", "backup"): 293, ("ta", "www"): 293, ("tb", "irc"): 293, ("tb", "list"): 293}
    accounts, level = shares((*TREE, *MORE_OF_THE_TREE), used)
    documented = by_user(accounts, ranks(accounts, level))
    idle = {"root", "mail", "news", "lp", "games", "man"}
    assert {documented[user] for user in idle} == {1.0}
    assert [documented[user] for user in ("www", "irc", "list", "backup")] == [0.4, 0.3, 0.3, 0.1]
    real = by_user(accounts, slurm_ranks(accounts, level))
    assert {real[user] for user in idle} == {1.0}
    assert [real[user] for user in ("www", "backup", "irc", "list")] == [0.4, 0.3, 0.3, 0.3]


def test_shares_of_the_parent() -> None:
    tree = (
        Association(account="lab", shares=3),
        Association(account="team", parent="lab", shares=None),
        Association(account="lab", user="ann", shares=2),
        Association(account="team", user="bob", shares=2),
        Association(account="lab", user="boss", shares=None),
    )
    accounts, level = shares(tree, {("lab", "ann"): 10, ("team", "bob"): 30, ("lab", "boss"): 9})
    found = {accounts.owner(number): value for number, value in enumerate(level)}
    # bob's account has no shares of its own, so bob is compared with ann, and boss with no user.
    assert found["user/lab/ann"] == pytest.approx(0.5 / (10 / 49))
    assert found["user/team/bob"] == pytest.approx(0.5 / (30 / 49))
    assert np.isinf(found["user/lab/boss"])


def test_without_shares_one_comes_last() -> None:
    tree = (
        Association(account="a", shares=0),
        Association(account="b"),
        Association(account="a", user="ann"),
        Association(account="b", user="bob"),
    )
    accounts, level = shares(tree, {("b", "bob"): 1000})
    fair = by_user(accounts, ranks(accounts, level))
    assert fair["root"] > fair["bob"] > fair["ann"]


@st.composite
def trees(draw: st.DrawFn) -> tuple[Accounts, list[float]]:
    """Draw a tree of up to four levels, with many ties."""
    names = [f"a{number}" for number in range(draw(st.integers(1, 6)))]
    spec = [
        Association(
            account=name,
            parent=draw(st.sampled_from(["root", *names[:index]])),
            shares=draw(st.sampled_from([0, 1, 1, 2, None])),
        )
        for index, name in enumerate(names)
    ]
    users = [
        Association(
            account=draw(st.sampled_from(["root", *names])),
            user=f"u{number}",
            shares=draw(st.sampled_from([1, 1, 2, None])),
        )
        for number in range(draw(st.integers(1, 10)))
    ]
    accounts = Accounts(MultifactorRules(associations=(*spec, *users)))
    used = {
        (one.account, str(one.user)): float(draw(st.sampled_from([0, 1, 1, 2, 5]))) for one in users
    }
    return accounts, usage_of(accounts, used)


@given(tree=trees())
def test_one_sort_is_as_good_as_a_walk(tree: tuple[Accounts, list[float]]) -> None:
    accounts, usage = tree
    level = level_shares(accounts, usage)
    assert by_user(accounts, ranks(accounts, level)) == pytest.approx(walked(accounts, level))


def fair_path(accounts: Accounts, number: int) -> list[int]:
    return [number, *fair_path(accounts, accounts.fair_parents[number])] if number > 0 else [0]


def walked(accounts: Accounts, level: Floats) -> dict[str, float]:
    """Rank by walking down, with equal accounts' children in one list: the documented rule."""
    users = [number for number in range(len(accounts.specs)) if accounts.is_user(number)]
    left = rank = len(users)
    fair: dict[str, float] = {}
    # An account without users has no rival.
    peopled = {number for user in users for number in fair_path(accounts, user)}

    def descend(parents: list[int], *, tied: bool) -> None:
        nonlocal left, rank
        below = [
            number
            for number in range(1, len(accounts.specs))
            if accounts.fair_parents[number] in parents and number in peopled
        ]
        for value in sorted({float(level[number]) for number in below}, reverse=True):
            equals = [number for number in below if level[number] == value]
            for number in filter(accounts.is_user, equals):
                if not tied:
                    rank = left
                fair[str(accounts.specs[number].user)] = rank / len(users)
                left -= 1
                tied = True
            rest = [number for number in equals if not accounts.is_user(number)]
            if rest:
                descend(rest, tied=tied)
            tied = False

    descend([0], tied=False)
    return fair
