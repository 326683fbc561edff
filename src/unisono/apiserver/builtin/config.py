"""ConfigMaps and Secrets: bytes under names, which may be frozen."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from unisono.apiserver.builtin.field_errors import forbidden, immutable, invalid, required, too_long
from unisono.apiserver.builtin.fields import annotations_of, at, child, fill_text
from unisono.apiserver.errors import Cause, bad_request
from unisono.apiserver.objects import Json
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.overriding import override

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MAX_KEY = 253
_MAX_BYTES = 2**20
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
# Which keys a secret of a well-known type must have.
_KEYS_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


_LOGIN = ("username", "password")  # of which one is enough


class ConfigMapStrategy(Strategy):
    """Texts and bytes under names."""

    has_generation = False

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield bad keys, too many bytes, and changes of what was frozen."""
        data, binary = at(obj, "data"), at(obj, "binaryData")
        yield from _check_keys(data, "data")
        yield from _check_keys(binary, "binaryData")
        for key in sorted(data.keys() & binary.keys()):
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        _refuse_other_than_base64(binary, "ConfigMap")
        size = sum(len(str(one).encode()) for one in data.values())
        size += sum(len(str(one)) * 3 // 4 for one in binary.values())
        if size > _MAX_BYTES:
            yield too_long("", _MAX_BYTES)
        if old is not None:
            yield from _check_frozen(obj, old, ("data", "binaryData"))


class SecretStrategy(Strategy):
    """Bytes under names that only some users may read."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Store what was given as text with the rest, as bytes."""
        fill_text(obj, type="Opaque")
        texts = obj.pop("stringData", None)
        if isinstance(texts, dict) and texts:
            data = child(obj, "data")
            for key, text in texts.items():
                # What is no text is left for the schema to refuse.
                data[key] = (
                    base64.b64encode(text.encode()).decode() if isinstance(text, str) else text
                )

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield bad keys, missing keys of the type, too many bytes, and changes of the frozen."""
        data, kind = at(obj, "data"), str(obj.get("type"))
        yield from _check_keys(data, "data")
        _refuse_other_than_base64(data, "Secret")
        if sum(len(str(one)) * 3 // 4 for one in data.values()) > _MAX_BYTES:
            yield too_long("data", _MAX_BYTES)
        for key in _KEYS_OF_TYPE.get(kind, ()):
            if key not in data:
                yield required(f"data[{key}]")
        if kind == "kubernetes.io/basic-auth" and not {*_LOGIN} & data.keys():
            yield from (required(f"data[{key}]") for key in _LOGIN)
        if kind == _ACCOUNT_TOKEN and not annotations_of(obj).get(_ACCOUNT_NAME):
            yield required(f"metadata.annotations[{_ACCOUNT_NAME}]")
        if old is not None:
            if obj.get("type") != old.get("type"):
                yield immutable("type", obj.get("type"))
            yield from _check_frozen(obj, old, ("data",))


def _check_keys(data: Json, path: str) -> Iterator[Cause]:
    for key in data:
        if len(key) > _MAX_KEY:
            yield invalid(f"{path}[{key}]", key, f"must be no more than {_MAX_KEY} characters")
        elif _KEY.fullmatch(key) is None or key in (".", "..") or key.startswith(".."):
            why = "a valid key has only letters, digits, '-', '_' or '.'"
            yield invalid(f"{path}[{key}]", key, why)


def _refuse_other_than_base64(data: Json, kind: str) -> None:
    """Bytes that cannot be read are no object at all, rather than one with a wrong field."""
    for key, value in data.items():
        try:
            base64.b64decode(str(value), validate=True)
        except (binascii.Error, ValueError):
            raise bad_request(f"{kind} cannot be read: {key} is not base64") from None


def _check_frozen(obj: Json, old: Json, fields: tuple[str, ...]) -> Iterator[Cause]:
    if old.get("immutable") is not True:
        return
    why = "field is immutable when `immutable` is set"
    if obj.get("immutable") is not True:
        yield forbidden("immutable", why)
    for field in fields:
        if (obj.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, why)
