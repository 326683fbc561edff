"""Classic fair share: Slurm's numbers, and what every sort of fair share promises."""

from __future__ import annotations

import pytest

from tests.support.priority_builders import MORE_OF_THE_TREE, TREE, usage_of
from unisono.engine.model.multifactor import Association, MultifactorRules
from unisono.engine.ordering.accounts import Accounts
from unisono.engine.ordering.fair_share import classic_shares, level_shares, norms_of, ranks

ALL = 1_000_000.0
# The parts of all usage that Slurm showed: research .995587, vision .991174, games .962452.
USED = {
    ("vision", "games"): 0.962452 * ALL,
    ("vision", "man"): (0.991174 - 0.962452) * ALL,
    ("nlp", "lp"): (0.995587 - 0.991174) * ALL,
    ("prod", "mail"): (1 - 0.995587) * ALL,
}


def test_the_numbers_of_a_real_cluster() -> None:
    accounts = Accounts(MultifactorRules(associations=(*TREE, *MORE_OF_THE_TREE)))
    usage = usage_of(accounts, USED)
    norms = norms_of(accounts, usage)
    fair = classic_shares(accounts, usage, MultifactorRules(fair_share="classic"))
    number = {accounts.owner(one): one for one in range(len(accounts.specs))}
    research, vision = number["account/research"], number["account/vision"]
    games = number["user/vision/games"]
    assert norms.effective[vision] == pytest.approx(0.994484, abs=1e-6)
    assert norms.effective[games] == pytest.approx(0.970460, abs=1e-6)
    assert fair[research] == pytest.approx(0.197561, abs=1e-6)
    assert fair[games] == pytest.approx(0.000218, abs=1e-6)


def test_one_half_is_exactly_the_share() -> None:
    tree = tuple(Association(account=name, shares=2) for name in ("a", "b"))
    users = tuple(Association(account=name, user=name) for name in ("a", "b"))
    rules = MultifactorRules(
        associations=(*tree, *users, Association(account="root", user="root", shares=0))
    )
    accounts = Accounts(rules)
    usage = usage_of(accounts, {("a", "a"): 70.0, ("b", "b"): 70.0})
    fair = classic_shares(accounts, usage, rules)
    assert {round(float(fair[accounts.find(name, name) or 0]), 9) for name in "ab"} == {0.5}


def test_dampening_makes_the_curve_flatter() -> None:
    accounts = Accounts(MultifactorRules(associations=TREE))
    usage = usage_of(accounts, USED)
    steep = classic_shares(accounts, usage, MultifactorRules(fair_share="classic"))
    flat = classic_shares(accounts, usage, MultifactorRules(fair_share="classic", dampening=5))
    games = accounts.find("vision", "games") or 0
    assert flat[games] == pytest.approx(float(steep[games]) ** 0.2)


def test_depth_does_not_count_when_oblivious() -> None:
    """A lone user deep down is judged like the account it is alone in."""
    deep = (
        Association(account="a", shares=1),
        Association(account="b", shares=1),
        Association(account="aa", parent="a"),
        Association(account="aaa", parent="aa"),
        Association(account="aaa", user="ann"),
        Association(account="b", user="bob"),
    )
    rules = MultifactorRules(fair_share="depth-oblivious", associations=deep)
    accounts = Accounts(rules)
    usage = usage_of(accounts, {("aaa", "ann"): 30.0, ("b", "bob"): 70.0})
    fair = classic_shares(accounts, usage, rules)
    assert fair[accounts.find("aaa", "ann") or 0] == pytest.approx(fair[accounts.find("a") or 0])
    assert fair[accounts.find("b", "bob") or 0] < fair[accounts.find("aaa", "ann") or 0]


@pytest.mark.parametrize("sort", ["tree", "classic", "depth-oblivious"])
def test_a_user_with_less_usage_of_the_same_share_is_never_behind(sort: str) -> None:
    rules = MultifactorRules(fair_share=sort, associations=TREE)  # type: ignore[arg-type]  # one of three
    accounts = Accounts(rules)
    for more in (1.0, 10.0, 1000.0):
        usage = usage_of(accounts, {("prod", "mail"): 5.0, ("prod", "news"): 5.0 + more})
        if sort == "tree":
            fair = ranks(accounts, level_shares(accounts, usage))
        else:
            fair = classic_shares(accounts, usage, rules)
        mail, news = accounts.find("prod", "mail") or 0, accounts.find("prod", "news") or 0
        assert fair[mail] > fair[news]
