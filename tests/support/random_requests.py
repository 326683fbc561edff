"""Random requests to the API, most of them nearly right.

Objects follow the schemas of their kinds, so that they get past the first check; then something is
swapped, dropped or added. Paths, queries, headers and bodies are mixed from what the API knows and
what it has never seen. The same seed makes the same requests.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson

from unisono.apiserver.request import Request, User
from unisono.kinds.shapes.served import Served
from unisono.kinds.shapes.shape import Shape
from unisono.kube.form import Json

ADMIN = User(name="admin", groups=("system:masters",))
NAMES = ("a", "b", "c")
NAMESPACES = (*["default"] * 20, "other", "no such")
_DEEPEST = 9
_MOST_FIELDS = 5

TEXTS = (
    "", "a", "b-1", "default", "a/b", "example.com/x", "1", "-1", "8080", "100%", "500m", "64Gi",
    "1e400", "9" * 40, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456Z", "10.0.0.1", "::1/64",
    "* * * * *", "true", "null", "None", "Never", "Always", "OnFailure", "Exists", "In", "ä€😀",
    "\x00", "\ud7ff", "a" * 300, "(", "[", "$(A)", "{{}}", "https://a.b/c?d=e#f", "aGk=", "~", " ",
    "spec.nodeName", "kubernetes", "foregroundDeletion", "orphan", "self == oldSelf",
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 10, 80, 65536, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 0.5, 2.0, 1e308)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "")
MEDIA = (
    "application/json", "application/json; charset=utf-8", "application/yaml", "text/plain", "",
    "application/json-patch+json", "application/merge-patch+json", "*/*", "a", ";;", "application/",
    "application/strategic-merge-patch+json", "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf", "application/cbor", "application/x-www-form-urlencoded",
)  # fmt: skip
ACCEPTED = (
    *MEDIA,
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v9",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
    ",,;=;=,",
)
QUERY: dict[str, tuple[str, ...]] = {
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a notin (", "==", "a>1", "a<x", "a in ()", ","),
    "fieldSelector": ("metadata.name=a", "spec.nodeName!=x", "status.phase=", "nope=1", "=", "a"),
    "limit": ("1", "2", "0", "-1", "x", "99999999999999999999", "", "9" * 5000),
    "continue": ("x", "", "eyJ2IjoxfQ==", "eyJ2IjoxLCJydiI6MSwic3RhcnQiOlsiYSIsImIiXX0=", "=", "ä"),
    "resourceVersion": ("0", "1", "5", "999999999", "x", "-1", "", "1e3", "٣", "9" * 5000),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "sendInitialEvents": ("true", "false", "x"),
    "allowWatchBookmarks": ("true", "false"),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("m", "", "a" * 200, "ä", "\x00"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x", ""),
    "force": ("true", "false", "x"),
    "pretty": ("true", "1", "x"),
    "includeObject": ("Object", "None", "Metadata", "x"),
    "propagationPolicy": ("Foreground", "Background", "Orphan", "x"),
    "gracePeriodSeconds": ("0", "1", "-1", "x", "9" * 30),
    "orphanDependents": ("true", "x"),
    "container": ("a", "", "../../x", "a" * 300),
    "tailLines": ("0", "1", "-1", "x", "9" * 30),
    "limitBytes": ("0", "1", "x"),
    "sinceSeconds": ("1", "x", "-5", "9" * 400),
    "sinceTime": ("2026-01-01T00:00:00Z", "x"),
    "previous": ("true",),
    "timestamps": ("true",),
    "hash": ("x",),
    "verbose": ("",),
    "\x00": ("\x00",),
}
OTHER_PATHS = (
    "/", "/api", "/apis", "/api/v1", "/apis/batch", "/apis/batch/v1", "/version", "/healthz",
    "/readyz/ping", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/batch/v1", "//",
    "/api/v1/", "/apis/x/y/z", "/api/v1/nodes/%2e%2e", "/api/v1/namespaces/default/pods/%00/log",
    "/api/v1/namespaces/default", "/api/v1/namespaces//pods", "/openapi/v3/" + "x/" * 50, "ä", "",
    "/apis/metrics.k8s.io/v1beta1/nodes", "/api/v1/watch/pods", "/api/v1/namespaces/a/b/c/d/e/f",
)  # fmt: skip
SUBRESOURCES = (
    "status", "scale", "log", "binding", "eviction", "finalize", "token", "exec", "approval", "x",
)  # fmt: skip
# The dice of a test's ids make these first.
UIDS = ("x", *(str(UUID(int=number, version=4)) for number in range(1, 12)))
_DEFINITION = "CustomResourceDefinition"
_SCHEMA_WORDS: dict[str, tuple[Any, ...]] = {
    "default": (1, "a", {}, [], None, {"a": 1}),
    "enum": (["a", "b"], [1], [], [None]),
    "pattern": ("^a+$", "(", "(a+)+$", "(?<x>a)", "\\p{L}", "[[:alpha:]]"),
    "format": ("date-time", "int32", "byte", "x", "email", "uuid", "ipv4"),
    "minimum": (0, 1, -1, 1.5),
    "maximum": (1, 10),
    "maxLength": (0, 5, -1),
    "minItems": (1, 3),
    "maxItems": (1, 0),
    "maxProperties": (1,),
    "multipleOf": (0, 2, 0.1),
    "nullable": (True,),
    "required": (["a"], ["a", "spec"], []),
    "uniqueItems": (True, False),
    "x-kubernetes-preserve-unknown-fields": (True,),
    "x-kubernetes-int-or-string": (True,),
    "x-kubernetes-embedded-resource": (True,),
    "x-kubernetes-list-type": ("map", "set", "atomic", "x"),
    "x-kubernetes-list-map-keys": (["a"], ["a", "b"], []),
    "x-kubernetes-map-type": ("atomic", "granular"),
    "x-kubernetes-validations": (
        [{"rule": "self == oldSelf"}],
        [{"rule": "has(self.a) && self.a > 1", "message": "no"}],
        [{"rule": "self.all(x, x == x)"}],
        [{"rule": "size(self) < 2", "messageExpression": "'is ' + string(size(self))"}],
        [{"rule": "("}],
        [{"rule": "self.a.b.c"}],
        [{"rule": "1/0 == 1"}],
        [{"rule": "self.matches('(a+)+$')"}],
    ),
    "allOf": ([{"minimum": 1}], [{}], []),
    "anyOf": ([{"type": "string"}, {"type": "integer"}], [{"required": ["a"]}]),
    "not": ({"required": ["a"]}, {}),
    "$ref": ("#/x", "core.v1.Pod"),
}
REVISED = ("status", "scale", "binding", "eviction", "finalize", "log")


class Wild:
    """Makes requests for some kinds."""

    def __init__(
        self, dice: random.Random, kinds: Sequence[Served], samples: Sequence[Json] = ()
    ) -> None:
        """Take the dice, the kinds, and objects of theirs that are right."""
        self._dice = dice
        self._kinds = list(kinds)
        self._samples: dict[tuple[str, str], list[Json]] = {}
        for sample in samples:
            self._samples.setdefault((sample["apiVersion"], sample["kind"]), []).append(sample)

    def roll(self, dice: random.Random) -> None:
        """Go on with other dice."""
        self._dice = dice

    def add(self, kind: Served) -> None:
        """Make requests for this kind, too."""
        self._kinds.append(kind)

    def request(self) -> Request:
        """Return one request; most are about objects and nearly right."""
        chance = self._dice.random()
        if chance < 0.06:
            return self._anything()
        kind = self._dice.choice(self._kinds)
        if chance < 0.45:
            return self._create(kind)
        if chance < 0.70:
            return self._change(kind)
        if chance < 0.80:
            return self._below(kind)
        return self._look_or_delete(kind)

    # ---- requests ----------------------------------------------------------------------------

    def _anything(self) -> Request:
        kind = self._dice.choice(self._kinds)
        path = self._dice.choice((*OTHER_PATHS, self._path(kind), self._path(kind, "a", "status")))
        return self._made(self._dice.choice(METHODS), path, self._bytes(kind))

    def _create(self, kind: Served) -> Request:
        obj = self.object(kind)
        body = orjson.dumps(obj) if self._dice.random() < 0.95 else self._bytes(kind)
        return self._made("POST", self._path(kind), body, media="application/json")

    def _change(self, kind: Served) -> Request:
        path = self._path(kind, self._name(), "status" if self._dice.random() < 0.2 else "")
        if self._dice.random() < 0.3:
            body = orjson.dumps(self.object(kind))
            return self._made("PUT", path, body, media="application/json")
        form = self._dice.choice(("json", "merge", "strategic-merge", "apply"))
        if form == "json":
            content: Any = [self._operation(kind) for _ in range(self._dice.randint(0, 3))]
        else:
            content = self.object(kind)
            if form == "strategic-merge":
                self._direct(content)
        media = f"application/{form}-patch+{'yaml' if form == 'apply' else 'json'}"
        query = {"fieldManager": "m"} if form == "apply" else {}
        return self._made("PATCH", path, orjson.dumps(content), media=media, query=query)

    def _below(self, kind: Served) -> Request:
        known = [part for part in kind.subresources if part in REVISED]
        part = self._dice.choice(known or SUBRESOURCES)
        body: Any = {
            "metadata": self._dice.choice(({}, {"name": "a"}, None, {"name": "a", "uid": "x"})),
            "target": self._dice.choice(({"name": "n"}, {}, None, "x", {"kind": "Pod"})),
            "spec": self._dice.choice(
                ({"replicas": 3}, {"replicas": "x"}, None, {"finalizers": 1})
            ),
            "deleteOptions": self._dice.choice((None, {}, {"gracePeriodSeconds": "x"}, 3)),
        }
        if self._dice.random() < 0.2:
            body = self._value()
        method = self._dice.choice(("GET", "PUT", "PATCH", "POST", "DELETE"))
        media = self._dice.choice((*MEDIA[-7:-4], "application/json", MEDIA[6]))
        path = self._path(kind, self._name(), part)
        return self._made(method, path, orjson.dumps(body), media=media)

    def _look_or_delete(self, kind: Served) -> Request:
        chance = self._dice.random()
        if chance < 0.35:
            return self._made("GET", self._path(kind), b"")
        if chance < 0.55:
            query = {"watch": "true", "timeoutSeconds": self._dice.choice(("0", "1", "-1", "x"))}
            return self._made("GET", self._path(kind), b"", query=query)
        if chance < 0.7:
            return self._made("GET", self._path(kind, self._name()), b"")
        options: Any = {
            "propagationPolicy": self._dice.choice(("Foreground", "Background", "Orphan", "x", 1)),
            "gracePeriodSeconds": self._dice.choice((0, 1, -1, "x", None)),
            "preconditions": self._dice.choice((None, {"uid": "x"}, {}, 3)),
        }
        body = self._dice.choice((b"", orjson.dumps(options), orjson.dumps(self._value())))
        name = self._name() if chance < 0.95 else ""
        return self._made("DELETE", self._path(kind, name), body, media="application/json")

    def _made(
        self, method: str, path: str, body: bytes, *, media: str = "", query: Json | None = None
    ) -> Request:
        asked = dict(query or {})
        while self._dice.random() < 0.3:
            name = self._dice.choice(tuple(QUERY))
            asked[name] = self._dice.choice(QUERY[name])
        headers = {"user-agent": self._dice.choice(("kubectl/v1", "curl/8", "", "ä/\x00"))}
        if media and self._dice.random() < 0.95:
            headers["content-type"] = media
        elif body:
            headers["content-type"] = self._dice.choice(MEDIA)
        if self._dice.random() < 0.15:
            headers["accept"] = self._dice.choice(ACCEPTED)
        return Request(
            method=method, path=path, query=asked, headers=headers, body=body, user=ADMIN
        )

    def _path(self, kind: Served, name: str = "", part: str = "") -> str:
        parts = ["/apis" if kind.group else "/api", kind.api_version]
        if kind.namespaced and self._dice.random() < 0.97:
            parts += ["namespaces", self._dice.choice(NAMESPACES)]
        parts += [each for each in (kind.plural, name, part) if each]
        return "/".join(parts)

    def _name(self) -> str:
        return self._dice.choice(NAMES) if self._dice.random() < 0.95 else self._dice.choice(TEXTS)

    def _bytes(self, kind: Served) -> bytes:
        whole = orjson.dumps(self.object(kind))
        return self._dice.choice(
            (
                b"",
                b"{",
                b"\xff\xfe\x00",
                b"null",
                b"[]",
                b'"x"',
                b"1e999",
                b"NaN",
                whole[: len(whole) // 2],
                b"[" * 5000,
                b"{a: &x [*x]}",
                b"a: b\n---\nc: d",
                b"&a [*a,*a]",
                b"k8s\x00" + whole,
                b"k8s\x00\x0a\x02\x08\x01",
                b"k8s\x00" + self._dice.randbytes(30),
                whole + whole,
                b'{"metadata":' * 200 + b"1" + b"}" * 200,
            )
        )

    # ---- objects -----------------------------------------------------------------------------

    def object(self, kind: Served) -> Json:
        """Return an object of a kind, right or nearly so."""
        samples = self._samples.get((kind.api_version, kind.kind))
        if kind.kind == _DEFINITION:
            obj = self._definition()
        elif samples and self._dice.random() < 0.6:
            obj = copy.deepcopy(self._dice.choice(samples))
        else:
            obj = self._fields(kind.shape, 0)
        obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
        metadata: Json = {"name": self._name()}
        if self._dice.random() < 0.3:
            found = kind.shape.field("metadata")
            more = self._shaped(found, 1) if found is not None else {}
            if isinstance(more, dict):
                more.pop("namespace", None)
                metadata = {**more, **metadata}
        if self._dice.random() < 0.1:
            metadata.pop("name")
            metadata["generateName"] = "g-"
        if kind.kind == _DEFINITION:
            metadata["name"] = "things.example.org"
        if self._dice.random() < 0.1:
            metadata["finalizers"] = ["example.org/x"]
        if self._dice.random() < 0.2:
            metadata["ownerReferences"] = [self._owner()]
        obj["metadata"] = metadata
        while self._dice.random() < 0.25:
            self._spoil(obj)
        return obj

    def _owner(self) -> Json:
        kind = self._dice.choice(self._kinds)
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": self._dice.choice(NAMES),
            "uid": self._dice.choice(UIDS),
            "blockOwnerDeletion": self._dice.random() < 0.5,
            "controller": self._dice.random() < 0.5,
        }

    def _definition(self) -> Json:
        """Return a definition of a kind that may or may not make sense."""
        columns: tuple[Json, ...] = (
            {"name": "A", "type": "integer", "jsonPath": ".spec.a"},
            {"name": "A"},
            {},
        )
        return {
            "spec": {
                "group": "example.org",
                "scope": self._dice.choice(("Namespaced", "Namespaced", "Cluster", "x")),
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": self._schema(0)},
                        "subresources": self._dice.choice(({}, {"status": {}}, None, {"x": 1})),
                        "additionalPrinterColumns": self._dice.choice(([], [columns[0]], columns)),
                    }
                ],
            }
        }

    def _schema(self, depth: int) -> Json:
        """Return a schema; the outermost is one of an object."""
        kinds = ("object", "string", "integer", "array", "boolean", "number")
        chosen = "object" if depth == 0 else self._dice.choice(kinds if depth < 4 else kinds[1:3])
        made: Json = {"type": chosen}
        if chosen == "object" and self._dice.random() < 0.8:
            names = ("spec", "status") if depth == 0 else ("a", "b", "c")
            made["properties"] = {name: self._schema(depth + 1) for name in names}
        elif chosen == "object":
            made["additionalProperties"] = self._schema(depth + 1)
        elif chosen == "array":
            made["items"] = self._schema(depth + 1)
        while self._dice.random() < 0.25:
            key = self._dice.choice(tuple(_SCHEMA_WORDS))
            made[key] = self._dice.choice(_SCHEMA_WORDS[key])
        return made

    def _fields(self, shape: Shape, depth: int) -> Json:
        required = [name for name in shape.raw.get("required", ()) if name in shape.names]
        others = [name for name in shape.names if name not in required]
        count = self._dice.randint(0, min(_MOST_FIELDS, len(others)))
        if depth == 0 and "spec" in others:
            required.append("spec")
        chosen = dict.fromkeys([*required, *self._dice.sample(others, count)])
        found = {}
        for name in chosen:
            field = shape.field(name)
            if field is not None and name not in ("apiVersion", "kind"):
                found[name] = self._shaped(field, depth + 1)
        return found

    def _shaped(self, shape: Shape, depth: int) -> Any:
        """Return a value of a shape; now and then one of another."""
        if self._dice.random() < 0.003:
            return self._value()
        allowed = shape.raw.get("enum")
        if allowed:
            return self._dice.choice(allowed)
        if shape.is_quantity:
            return self._dice.choice((1, "2", "500m", "64Gi", "0", "-1", "1e3", 0.5))
        if shape.is_int_or_string:
            return self._dice.choice((1, "50%", "http", 0, -1))
        match shape.type:
            case "object" if shape.names:
                return {} if depth > _DEEPEST else self._fields(shape, depth)
            case "object":
                inner = shape.values
                keys = self._dice.sample(("a", "b", "cpu", "nvidia.com/gpu", "app"), 2)
                if inner is None or depth > _DEEPEST:
                    return {}
                return {key: self._shaped(inner, depth + 1) for key in keys}
            case "array":
                inner = shape.items
                if inner is None or depth > _DEEPEST:
                    return []
                return [self._shaped(inner, depth + 1) for _ in range(self._dice.randint(0, 2))]
            case "integer" | "number":
                low, high = shape.raw.get("minimum", 0), shape.raw.get("maximum", 9)
                return self._dice.choice((low, low, high, 1, 2, 1, self._dice.choice(NUMBERS)))
            case "boolean":
                return self._dice.random() < 0.5
            case "string":
                return self._dice.choice((*"aabbcccc", "default", self._dice.choice(TEXTS)))
            case _:
                return self._value()

    def _value(self, depth: int = 0) -> Any:
        """Return anything that JSON can say."""
        match self._dice.randint(0, 7 if depth < 4 else 4):
            case 0:
                return None
            case 1:
                return self._dice.random() < 0.5
            case 2:
                return self._dice.choice(NUMBERS)
            case 3 | 4:
                return self._dice.choice(TEXTS)
            case 5:
                return [self._value(depth + 1) for _ in range(self._dice.randint(0, 3))]
            case _:
                keys = self._dice.sample(("a", "name", "spec", "metadata", "$patch", "", "x/y"), 2)
                return {key: self._value(depth + 1) for key in keys}

    def _spoil(self, obj: Any) -> None:
        """Swap, drop or add something somewhere."""
        here = obj
        while True:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                return
            key = self._dice.choice(keys)
            below = here[key]
            if isinstance(below, dict | list) and below and self._dice.random() < 0.8:
                here = below
                continue
            match self._dice.randint(0, 3):
                case 0:
                    here[key] = self._value()
                case 1:
                    del here[key]
                case 2 if isinstance(here, dict):
                    here[self._dice.choice(TEXTS)] = self._value()
                case 2:
                    here.append(below)
                case _:
                    here[key] = None
            return

    # ---- patches -----------------------------------------------------------------------------

    def _operation(self, kind: Served) -> Any:
        names = ("metadata", "labels", "spec", "status", *kind.shape.names, "0", "-", "a", "~1", "")
        path = "".join(f"/{self._dice.choice(names)}" for _ in range(self._dice.randint(0, 4)))
        made: Json = {
            "op": self._dice.choice(("add", "remove", "replace", "move", "copy", "test", "x", 1)),
            "path": path,
            "value": self._value(),
            "from": self._dice.choice((path, "/metadata/labels", "/spec", "x", None)),
        }
        for key in list(made):
            if self._dice.random() < 0.05:
                del made[key]
        return made if self._dice.random() < 0.97 else self._value()

    def _direct(self, content: Any) -> None:
        """Put a directive of strategic merge somewhere."""
        if not isinstance(content, dict):
            return
        if self._dice.random() < 0.3:
            key = self._dice.choice(
                (
                    "$patch",
                    "$retainKeys",
                    "$setElementOrder/containers",
                    "$deleteFromPrimitiveList/a",
                )
            )
            content[key] = self._dice.choice(
                ("delete", "replace", "merge", ["a"], [{"name": "a"}], 1)
            )
        below = [value for value in content.values() if isinstance(value, dict)]
        if below:
            self._direct(self._dice.choice(below))
