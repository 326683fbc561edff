"""Which kinds are served at this moment: the built-in ones, and those that users defined.

A kind is stored once, under `group/plural` and in its storage version; every version of it is a
`Resource` here, with its checker and its strategy at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from unisono.apiserver.builtin import STRATEGIES
from unisono.apiserver.builtin.typed_validation import TypedStrategy
from unisono.apiserver.schema.checker import Checker
from unisono.apiserver.strategy import Strategy
from unisono.kinds.shapes.foreign import foreign_kinds
from unisono.kinds.shapes.served import Served, served_kinds

# Of these groups every object is one of Kubernetes' own types.
_TYPED_GROUPS = frozenset(
    {
        "",
        "apps",
        "batch",
        "policy",
        "autoscaling",
        "scheduling.k8s.io",
        "coordination.k8s.io",
        "events.k8s.io",
        "rbac.authorization.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "networking.k8s.io",
        "storage.k8s.io",
        "node.k8s.io",
        "resource.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "metrics.k8s.io",
    }
)


# Events have two faces, in two groups, and one store.
_STORED_UNDER = {"events.k8s.io/events": "/events"}
_STORED_AS = {"/events": "v1"}


class CustomStrategy(Strategy):
    """A kind that a user defined."""

    allows_unconditional_update = False
    is_metadata_in_status = False
    is_typed = False


class Resource:
    """One kind in one version, ready to be served."""

    def __init__(self, served: Served, stored_as: str, strategy: Strategy) -> None:
        """Take the kind; its checker is compiled when the first object is written."""
        self.served = served
        self.strategy = strategy
        self.key = _STORED_UNDER.get(served.key, served.key)
        self.stored_as = _STORED_AS.get(self.key, stored_as)  # an apiVersion
        self.is_as_stored = self.stored_as == served.api_version
        self.is_only_version = True
        self.schema_rv = 0  # objects from before this version may lack defaults

    @cached_property
    def checker(self) -> Checker:
        """What knows the fields of the kind."""
        return Checker(self.served.shape, typed=self.strategy.is_typed)

    @property
    def has_status(self) -> bool:
        """Whether the status is written through an address of its own."""
        return "status" in self.served.subresources


class Catalogue:
    """All resources, found by the parts of an address."""

    def __init__(self) -> None:
        """Begin with the kinds that are built in."""
        self._by_address: dict[tuple[str, str, str], Resource] = {}
        self._storage: dict[str, Resource] = {}
        self._custom: dict[str, tuple[Served, ...]] = {}  # by key
        self.version = 0  # counts changes; discovery is made anew when it moved
        self._served: tuple[Served, ...] | None = None
        by_key: dict[str, list[Served]] = {}
        for served in served_kinds():
            by_key.setdefault(served.key, []).append(served)
        for versions in by_key.values():
            self._enter(versions)
        for key, foreign in foreign_kinds().items():
            if key not in by_key:
                self._custom[key] = foreign
                self._enter(foreign)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource by the parts of its address."""
        return self._by_address.get((group, version, plural))

    def storage(self, key: str) -> Resource | None:
        """Return a kind in the version it is stored in."""
        return self._storage.get(key)

    def is_builtin(self, key: str) -> bool:
        """Say whether a kind is ours and not a user's."""
        return key in self._storage and key not in self._custom

    def keys(self) -> list[str]:
        """Return the keys of all kinds."""
        return list(self._storage)

    def namespaced(self) -> list[Resource]:
        """Return every kind that lives in namespaces, in its storage version."""
        return [one for one in self._storage.values() if one.served.namespaced]

    def has_group(self, group: str) -> bool:
        """Say whether anything is served under a group."""
        return any(address[0] == group for address in self._by_address)

    def served(self) -> Sequence[Served]:
        """Return all kinds in the order of discovery."""
        if self._served is None:
            custom = (served for versions in self._custom.values() for served in versions)
            ordered = sorted(custom, key=lambda one: one.group)
            self._served = (*served_kinds(), *ordered)
        return self._served

    def define(self, versions: Sequence[Served], rv: int) -> None:
        """Serve a user's kind from now on, instead of what was served under its name.

        `rv` is the version of the definition: older objects lack defaults that it may have.
        """
        key = versions[0].key
        self._leave(key)
        self._custom[key] = tuple(versions)
        self._enter(versions, rv)
        self._moved()

    def withdraw(self, key: str) -> None:
        """Stop serving a user's kind; one of another project is served as without a definition."""
        self._leave(key)
        if key in foreign_kinds() and key not in self._storage:
            self._custom[key] = foreign_kinds()[key]
            self._enter(self._custom[key])
        self._moved()

    def _leave(self, key: str) -> None:
        for served in self._custom.pop(key, ()):
            self._by_address.pop((served.group, served.version, served.plural), None)
            self._storage.pop(key, None)

    def _moved(self) -> None:
        self.version += 1
        self._served = None

    def _enter(self, versions: Iterable[Served], rv: int = 0) -> None:
        listed = list(versions)
        stored = next((one for one in listed if one.is_storage), listed[0])
        for served in listed:
            resource = Resource(served, stored.api_version, _strategy_of(served))
            resource.schema_rv = rv
            resource.is_only_version = len(listed) == 1
            self._by_address[served.group, served.version, served.plural] = resource
            if resource.is_as_stored:
                self._storage[resource.key] = resource


def _strategy_of(served: Served) -> Strategy:
    found = STRATEGIES.get(_STORED_UNDER.get(served.key, served.key))
    if found is not None:
        return found
    if served.group in _TYPED_GROUPS:
        return Strategy()
    known = TypedStrategy.of(served)
    return known if known is not None else CustomStrategy()
