"""From a word that a person types to the kind that is meant: `pods`, `po`, `Job`, `queues.kueue…`.

The API says what it has (aggregated discovery: two answers, every Kubernetes since 1.27) and in
which order; of several kinds that a word could mean the first one is meant, and full names go
before short ones, as for kubectl. A group behind a dot chooses: `jobs.batch.volcano.sh`. A category
(`all`, `unisono`) means several kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from unisono.kinds.nearest import did_you_mean
from unisono.kube.calls import Call
from unisono.kube.client import Client
from unisono.kube.errors import BadResponse, UnknownKind
from unisono.kube.mapping import Kind, Resource

_ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind, its address, and what people call it."""

    resource: Resource
    group: str
    names: frozenset[str]  # in lower case: plural, singular, kind
    short_names: frozenset[str]
    categories: frozenset[str]
    verbs: frozenset[str]

    @property
    def kind(self) -> Kind:
        """As manifests name it."""
        return Kind(self.resource.api_version, self.resource.kind)

    @property
    def full_name(self) -> str:
        """The plural with its group: what is printed and can be typed again."""
        return f"{self.resource.plural}.{self.group}" if self.group else self.resource.plural


class ApiResources:
    """Everything that one API serves, by name."""

    def __init__(self, spoken: tuple[ApiResource, ...]) -> None:
        """Take the kinds in the order of the API."""
        self._spoken = spoken

    def find(self, word: str) -> ApiResource:
        """Return the kind that a word means; raises UnknownKind."""
        name, _, group = word.lower().partition(".")
        there = [each for each in self._spoken if not group or _is_in(each, group)]
        for each in there:
            if name in each.names:
                return each
        for each in there:
            if name in each.short_names:
                return each
        hint = did_you_mean(name, sorted({known for each in there for known in each.names}))
        raise UnknownKind(f"the API serves no kind {word!r}{hint}")

    def every(self) -> tuple[ApiResource, ...]:
        """Return all kinds, in the order of the API."""
        return self._spoken

    def namesakes(self, word: str) -> list[ApiResource]:
        """Return the kind that a word means and, if it names no group, those called the same."""
        first = self.find(word)
        if "." in word:
            return [first]
        kind = first.kind.kind
        return [first, *(one for one in self._spoken if one is not first and one.kind.kind == kind)]

    def find_all(self, words: str) -> list[ApiResource]:
        """Return what a list of words and categories means: `pods,jobs`, `all`."""
        found: dict[str, ApiResource] = {}
        for word in words.split(","):
            members = [each for each in self._spoken if word in each.categories]
            chosen = [each for each in members if "list" in each.verbs] or [self.find(word)]
            found.update((each.full_name, each) for each in chosen)
        return list(found.values())


def _is_in(each: ApiResource, group: str) -> bool:
    """Say whether a kind is in a group, given whole, with its version, or by its beginning."""
    version = each.resource.api_version.rpartition("/")[2]
    return each.group.startswith(group) or f"{version}.{each.group}".rstrip(".") == group


# --- what the API says ----------------------------------------------------------------------------


class _ResponseKind(msgspec.Struct, frozen=True):
    kind: str
    group: str = ""
    version: str = ""


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    resource: str
    response_kind: _ResponseKind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class _Version(msgspec.Struct, frozen=True):
    version: str
    resources: tuple[_Resource, ...] = ()


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Group(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    versions: tuple[_Version, ...] = ()


class _Groups(msgspec.Struct, frozen=True):
    kind: str
    items: tuple[_Group, ...] = ()


_decode = msgspec.json.Decoder(_Groups).decode


async def discover(client: Client) -> ApiResources:
    """Ask the API what it serves."""
    spoken: list[ApiResource] = []
    for path in ("/api", "/apis"):
        call = Call(method="GET", path=path, headers={"Accept": _ACCEPT}, repeatable=True)
        body = (await client.caller.call(call)).body
        try:
            groups = _decode(body)
        except msgspec.DecodeError as error:
            raise BadResponse(f"the discovery at {path} cannot be read: {error}") from error
        if groups.kind != "APIGroupDiscoveryList":
            raise BadResponse(f"the API answers {path} in the form of before Kubernetes 1.27")
        spoken += (each for group in groups.items for each in _kinds(group))
    return ApiResources(tuple(spoken))


def _kinds(group: _Group) -> Iterator[ApiResource]:
    """Yield the kinds of a group, each in the version that stands first."""
    name = group.metadata.name
    seen: set[str] = set()
    for version in group.versions:
        for each in version.resources:
            if each.resource in seen or each.response_kind is None:
                continue
            seen.add(each.resource)
            kind = each.response_kind.kind
            api_version = f"{name}/{version.version}" if name else version.version
            words = (each.resource, each.singular_resource, kind)
            yield ApiResource(
                Resource(api_version, kind, each.resource, namespaced=each.scope == "Namespaced"),
                name,
                frozenset(word.lower() for word in words if word),
                frozenset(each.short_names),
                frozenset(each.categories),
                frozenset(each.verbs),
            )
