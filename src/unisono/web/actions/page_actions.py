"""Offers, previews and carries out actions, through an API client of the signed-in user.

    offers    which actions apply to an object, and whether the user may
    preview   what would be done, what follows, the same as commands; and a confirmation to send
    do        the same prepared again, and written if it is still what was confirmed

Every read and write is the user's own request: RBAC, admission and the audit log of the API see
that user, and this process needs no rights of its own. The confirmation proves that the page of
that user showed this action: it is made with the user's token, which other sites do not have, and
with what would be written. So it needs no memory here, and works at every replica.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

import msgspec

from unisono.engine.explain.formatting import format_duration
from unisono.engine.model.errors import UnisonoError
from unisono.kinds.digits import whole_number
from unisono.kube.client import Client
from unisono.kube.errors import Forbidden, KubeError, StatusError
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.kube.pods import evict
from unisono.web.actions import gangs, nodes, queues
from unisono.web.actions.action import Action, Asked, CannotAct, Here, Prepared, Right, Write
from unisono.web.actions.what_if import Outcome, WhatIf, sentences
from unisono.web.auth import Permissions, token_of

_TARGETS: Mapping[str, tuple[Kind, Sequence[Action]]] = {
    "workload": (gangs.TARGET, gangs.ACTIONS),
    "queue": (queues.TARGET, queues.ACTIONS),
    "node": (nodes.TARGET, nodes.ACTIONS),
}
# A confirmation is good for so long: to read, to fetch a colleague, not to leave over night.
_CONFIRMED_S = 600
# Evictions and deletions of pods are sent so many at a time.
_AT_ONCE = 8


class NotAllowed(UnisonoError):
    """The user may not do this; says which permission is missing, or what the API said."""


class NotConfirmed(UnisonoError):
    """The confirmation is missing, too old, or for something else."""


class ActsAs(Protocol):
    """Makes API clients that act as the user of a request."""

    def acting(self, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Client]:
        """Return a client with the user's rights, and no other's, while the block lasts."""


class PageActions:
    """Everything that the page can do."""

    def __init__(
        self,
        acts_as: ActsAs,
        what_if: WhatIf,
        *,
        now: Callable[[], float],
        job_of: Callable[[str], str],
        may_create_policy: bool = False,
    ) -> None:
        """Act as users; `job_of` returns the name of a workload's job.

        `may_create_policy`: without a Policy object the defaults count, so that one may be made.
        """
        self._acts_as = acts_as
        self._what_if = what_if
        self._now = now
        self._job_of = job_of
        self._may_create_policy = may_create_policy

    def knows(self, target: str) -> bool:
        """Say whether there is something to do with objects of a sort."""
        return target in _TARGETS

    # ---- offers ----------------------------------------------------------------------------------

    async def offers(
        self,
        headers: Mapping[str, str],
        permissions: Permissions,
        target: str,
        namespace: str,
        name: str,
    ) -> list[Json]:
        """Return the actions that apply to an object, with a permission that the user lacks."""
        kind, actions = _TARGETS[target]
        async with self._acts_as.acting(headers) as api:
            here = self._here(api, permissions)
            obj = await here.get(kind, name, namespace)
            found = []
            reviews: dict[Right, bool] = {}
            for action in actions:
                fields = await action.fields(here, obj)
                if fields is None:
                    continue
                missing = await _missing(api, await action.needs(here, obj), reviews)
                found.append(
                    {
                        "action": action.name,
                        "label": action.label,
                        "grave": action.is_grave,
                        "fields": msgspec.to_builtins(fields),
                        "missing": "" if missing is None else str(missing),
                    }
                )
            return found

    # ---- preview ---------------------------------------------------------------------------------

    async def preview(
        self, headers: Mapping[str, str], permissions: Permissions, target: str, asked: Asked
    ) -> Json:
        """Return what would be done and what follows, with a confirmation if it may be done."""
        kind, actions = _TARGETS[target]
        action = _named(actions, asked.action)
        async with self._acts_as.acting(headers) as api:
            here = self._here(api, permissions)
            obj = await here.get(kind, asked.name, asked.namespace)
            prepared = await action.prepare(here, obj, asked)
            missing = await _missing(api, await action.needs(here, obj), {})
            refusal = f"you lack the permission to {missing}" if missing is not None else ""
            refusal = refusal or await _rehearsed(api, prepared.writes)
        estimate = await self._follows(prepared, permissions)
        expires = int(self._now()) + _CONFIRMED_S
        proof = _proof(headers, target, asked, prepared, expires)
        return {
            "title": prepared.title,
            "says": prepared.says,
            "follows": estimate,
            "commands": prepared.commands,
            "refusal": refusal,
            "confirm": "" if refusal else f"{expires}.{proof}",
        }

    async def _follows(self, prepared: Prepared, permissions: Permissions) -> Sequence[str]:
        if prepared.edit is None:
            return ("What-if does not know this action: only what is said above is known.",)
        outcome = await self._what_if.ask(prepared.edit, prepared.workload, permissions.name)
        if isinstance(outcome, str):
            return (f"What-if is not available: {outcome}.",)
        return self._said(outcome, prepared.workload, permissions)

    def _said(self, outcome: Outcome, key: str, permissions: Permissions) -> Sequence[str]:
        def named(one: str) -> str:
            namespace, _, _ = one.partition("/")
            return self._job_of(one) if permissions.sees(namespace) else ""

        def when(at: float) -> str:
            left = int(at - self._now() * 1000)
            return f"in {format_duration(left)}" if left > 0 else "now"

        return sentences(outcome, key, named, when)

    # ---- do --------------------------------------------------------------------------------------

    async def do(
        self,
        headers: Mapping[str, str],
        permissions: Permissions,
        target: str,
        asked: Asked,
        confirm: str,
    ) -> str:
        """Do what was confirmed, and say so."""
        kind, actions = _TARGETS[target]
        action = _named(actions, asked.action)
        async with self._acts_as.acting(headers) as api:
            here = self._here(api, permissions)
            obj = await here.get(kind, asked.name, asked.namespace)
            prepared = await action.prepare(here, obj, asked)
            text, _, proof = confirm.partition(".")
            expires = whole_number(text)
            if expires is None or expires < self._now():
                raise NotConfirmed("the confirmation is too old; look at what follows again")
            expected = _proof(headers, target, asked, prepared, expires)
            if not hmac.compare_digest(proof.encode(), expected.encode()):
                raise NotConfirmed("this is not what was confirmed; look at what follows again")
            await _carry_out(api, prepared.writes)
        return prepared.done

    def _here(self, api: Client, permissions: Permissions) -> Here:
        return Here(
            api=api,
            user=permissions.name,
            now=self._now(),
            may_create_policy=self._may_create_policy,
        )


def _named(actions: Sequence[Action], name: str) -> Action:
    for action in actions:
        if action.name == name:
            return action
    raise CannotAct(f"there is no action {name}")


def _proof(
    headers: Mapping[str, str], target: str, asked: Asked, prepared: Prepared, expires: int
) -> str:
    """Return what only a page with the user's token can know about this action."""
    key = hashlib.sha256(b"unisono action\0" + token_of(headers).encode()).digest()
    about = [target, *asked[:3], sorted(asked.fields.items()), expires]
    writes = [[one.verb, one.namespace, one.name, one.uid] for one in prepared.writes]
    text = json.dumps([about, writes, list(prepared.commands)])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


# ---- the API -------------------------------------------------------------------------------------


async def _missing(api: Client, rights: Sequence[Right], known: dict[Right, bool]) -> Right | None:
    """Return the first permission that the user lacks."""
    for right in rights:
        if right not in known:
            known[right] = await _may(api, right)
        if not known[right]:
            return right
    return None


async def _may(api: Client, right: Right) -> bool:
    about = {key: value for key, value in right._asdict().items() if value}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": about},
    }
    status = (await api.create(review)).get("status") or {}
    return status.get("allowed") is True and not status.get("denied")


async def _rehearsed(api: Client, writes: Sequence[Write]) -> str:
    """Return why the API would refuse a patch, by its own dry run; empty if it would not."""
    for one in writes:
        if one.verb != "patch" or one.changes is None:
            continue
        try:
            await api.patch(
                one.kind, one.name, one.namespace, one.changes, form=_form(one), dry_run=True
            )
        except StatusError as refusal:
            return _plain(refusal)
    return ""


async def _carry_out(api: Client, writes: Sequence[Write]) -> None:
    """Write everything; what can be repeated first, then what ends pods, a few at a time."""
    ending = [one for one in writes if one.verb in ("evict", "delete")]
    done = 0
    try:
        for one in writes:
            if one not in ending:
                await _write(api, one)
                done += 1
        for at in range(0, len(ending), _AT_ONCE):
            some = ending[at : at + _AT_ONCE]
            results = await asyncio.gather(
                *(_write(api, one) for one in some), return_exceptions=True
            )
            done += sum(not isinstance(one, BaseException) for one in results)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
    except StatusError as refusal:
        before = f"{done} of {len(writes)} writes are done; then: " if done else ""
        message = f"{before}{_plain(refusal)}"
        raise (NotAllowed if isinstance(refusal, Forbidden) else CannotAct)(message) from refusal


async def _write(api: Client, one: Write) -> None:
    changes = one.changes
    match one.verb:
        case "delete":
            await api.delete(one.kind, one.name, one.namespace, uid=one.uid)
        case "evict":
            await evict(api, one.name, one.namespace, uid=one.uid)
        case "create":
            assert isinstance(changes, dict), "an object is created"
            await api.create(changes)
        case "patch":
            assert changes is not None, "a patch has changes"
            await api.patch(one.kind, one.name, one.namespace, changes, form=_form(one))


def _form(one: Write) -> Literal["merge", "json"]:
    return "json" if isinstance(one.changes, list) else "merge"


def _plain(error: KubeError) -> str:
    return " ".join(str(error).split())
