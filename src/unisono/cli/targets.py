"""Which objects the words of a command mean: `pods`, `pods a b`, `job/a pod/b`, `cq,lq`."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.kube.api_resources import ApiResource, ApiResources
    from unisono.kube.client import Client

WORDS = (
    "KIND [NAME...], KIND/NAME..., or KIND,KIND; KIND may be short, or have a group: vcjob, "
    "jobs.batch.volcano.sh"
)


@dataclass(frozen=True, slots=True)
class Target:
    """A kind, and one object of it or all of them."""

    spoken: ApiResource
    name: str = ""

    @property
    def label(self) -> str:
        """What is printed for it, and can be typed again."""
        singular = self.spoken.resource.kind.lower()
        kind = f"{singular}.{self.spoken.group}" if self.spoken.group else singular
        return f"{kind}/{self.name}"


def read_targets(lookup: ApiResources, words: list[str]) -> list[Target]:
    """Return what is meant; raises InvalidManifest or UnknownKind."""
    if any("/" in word for word in words):
        return [_pair(lookup, word) for word in words]
    kinds, *names = words
    if not names:
        return [Target(spoken) for spoken in lookup.find_all(kinds)]
    if "," in kinds:
        raise InvalidManifest("", f"{kinds} are several kinds; name one, or say KIND/NAME")
    spoken = lookup.find(kinds)
    return [Target(spoken, name) for name in names]


def kind_words(words: list[str]) -> list[str]:
    """Return the word for the kind of each target, where every target is one object.

    >>> kind_words(["job", "a", "b"]), kind_words(["job/a", "pg/b"])
    (['job', 'job'], ['job', 'pg'])
    """
    if any("/" in word for word in words):
        return [word.partition("/")[0] for word in words]
    return [words[0]] * max(1, len(words) - 1)


def _pair(lookup: ApiResources, word: str) -> Target:
    kind, slash, name = word.partition("/")
    if not (kind and slash and name):
        raise InvalidManifest("", f"{word!r} is not of the form KIND/NAME, like the others")
    return Target(lookup.find(kind), name)


def namespace_of(client: Client, arguments: argparse.Namespace, spoken: ApiResource) -> str:
    """Return the namespace to look in; empty means all of them, or a kind that has none."""
    if not spoken.resource.namespaced or getattr(arguments, "everywhere", False):
        return ""
    return arguments.namespace or client.namespace
