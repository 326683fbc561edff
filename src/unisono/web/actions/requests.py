"""Actions over HTTP.

    GET  /actions?target=…&namespace=…&name=…   the actions that apply, and what the user lacks
    POST /actions/preview                       what would be done, what follows, a confirmation
    POST /actions                               the same with the confirmation: do it

A body is JSON: `{"target", "action", "namespace", "name", "fields", "confirm"}`. Three things keep
other sites out, each enough by itself: browsers say where a request comes from (Origin and
Sec-Fetch-Site, which must be this page); the content type is one that a form cannot send, and no
other site is allowed to; and the confirmation is made with the user's token. The address in Host
was checked before (`Site`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
import orjson
from msgspec import Meta

from unisono.kube.errors import Forbidden, KubeError, NotFound, StatusError, Unauthorized
from unisono.language import LANGUAGES, Language
from unisono.language.catalog import catalog, translated
from unisono.net.http.messages import Response
from unisono.net.http.pages import PageRequest
from unisono.web import http
from unisono.web.actions.action import Asked, CannotAct
from unisono.web.actions.page_actions import NotAllowed, NotConfirmed, PageActions
from unisono.web.auth import Permissions
from unisono.web.http import LONGEST, is_name

MOST_BYTES = 8192
_JSON = "application/json"
_Name = Annotated[str, Meta(max_length=LONGEST)]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    target: Annotated[str, Meta(max_length=20)]
    action: Annotated[str, Meta(max_length=40)]
    name: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    namespace: _Name = ""
    fields: Annotated[
        dict[Annotated[str, Meta(max_length=40)], Annotated[str, Meta(max_length=500)]],
        Meta(max_length=8),
    ] = {}  # msgspec gives every struct its own copy
    confirm: Annotated[str, Meta(max_length=100)] = ""
    lang: Annotated[str, Meta(max_length=8)] = ""


def is_action(path: str) -> bool:
    """Say whether a path is one of these."""
    return path in ("/actions", "/actions/preview")


async def answer(actions: PageActions, request: PageRequest, permissions: Permissions) -> Response:
    """Answer a request of a signed-in user."""
    spoken = _Spoken()
    try:
        return await _answer(actions, request, permissions, spoken)
    except NotAllowed as refusal:
        return http.refusal(403, spoken.say(str(refusal)))
    except (CannotAct, NotConfirmed) as refusal:
        return http.refusal(409, spoken.say(str(refusal)))
    except Unauthorized:
        return http.refusal(401, "the token is missing or wrong")
    except Forbidden as refusal:
        return http.refusal(403, " ".join(str(refusal).split()))
    except NotFound:
        return http.refusal(404, "it is not there any more")
    except StatusError as refusal:
        return http.refusal(409, " ".join(str(refusal).split()))
    except KubeError as error:
        return http.refusal(503, f"the API server does not answer: {error}")


# What an answer has in words.
_SENTENCES = frozenset(("label", "options", "title", "says", "follows", "refusal", "done"))


class _Spoken:
    """The language of an answer, as soon as it is known which one was asked for."""

    def __init__(self) -> None:
        self.language: Language = "en"

    def asked(self, language: str) -> None:
        self.language = next((one for one in LANGUAGES if one == language), "en")

    def say(self, text: str) -> str:
        return catalog(self.language).say(text)

    def json(self, value: Mapping[str, object]) -> Response:
        return _json(translated(dict(value), _SENTENCES, self.language))


async def _answer(
    actions: PageActions, request: PageRequest, permissions: Permissions, spoken: _Spoken
) -> Response:
    if request.method == "GET" and request.path == "/actions":
        spoken.asked(request.query.get("lang", ""))
        target, namespace, name = (request.query.get(key, "") for key in _ADDRESS)
        if not actions.knows(target) or not _are_names(namespace, name):
            return http.refusal(400, "target, namespace and name say of which object")
        try:
            found = await actions.offers(request.headers, permissions, target, namespace, name)
        except NotFound:
            found = []  # what was just deleted has no actions
        return spoken.json({"actions": found})
    if request.method != "POST":
        return http.refusal(405, "GET or POST")
    if not http.is_same_origin(request):
        return http.refusal(403, "another site asked for that")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        return http.refusal(415, f"the body must be {_JSON}")
    try:
        body = msgspec.json.decode(request.body, type=_Body)
    except msgspec.DecodeError as problem:
        return http.refusal(400, f"the body cannot be read: {problem}")
    if not actions.knows(body.target) or not _are_names(body.namespace, body.name):
        return http.refusal(400, "target, namespace and name say of which object")
    spoken.asked(body.lang)
    asked = Asked(body.action, body.namespace, body.name, body.fields)
    if request.path == "/actions/preview":
        return spoken.json(await actions.preview(request.headers, permissions, body.target, asked))
    done = await actions.do(request.headers, permissions, body.target, asked, body.confirm)
    return spoken.json({"done": done})


_ADDRESS = ("target", "namespace", "name")


def _are_names(namespace: str, name: str) -> bool:
    """Say whether these can be names of objects: nothing else may become a part of an address."""
    return is_name(name) and (not namespace or is_name(namespace))


def _json(value: Mapping[str, object]) -> Response:
    return http.answer(200, orjson.dumps(value), _JSON)
