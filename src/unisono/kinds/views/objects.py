"""What objects of any kind have: `metadata`, and `status.conditions`, one entry per type."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.kinds.views.base import (
    Flag,
    Malformed,
    Number,
    NumberIfAny,
    Part,
    Parts,
    Raw,
    Raws,
    Text,
    TextMap,
    Texts,
    View,
    objects_in,
    seconds_of,
)


class Condition(View):
    """One observed fact, and since when it holds."""

    __slots__ = ()

    type = Text("type")
    status = Text("status")
    reason = Text("reason")
    message = Text("message")
    last_transition_time = Text("lastTransitionTime")
    observed_generation = Number("observedGeneration")

    @property
    def is_true(self) -> bool:
        """Whether it was observed to hold."""
        return self.raw.get("status") == "True"

    @property
    def is_false(self) -> bool:
        """Whether it was observed not to hold; unknown is neither."""
        return self.raw.get("status") == "False"

    @property
    def since(self) -> float:
        """When its status last changed, in seconds since 1970; 0 if that was not written down."""
        return seconds_of(self.last_transition_time)


class Conditions:
    """The conditions of an object by type; the first one, should there be several of a type."""

    __slots__ = ("raw",)

    def __init__(self, raw: object) -> None:
        """Look at a list of conditions; None is an empty one."""
        self.raw = raw

    def __iter__(self) -> Iterator[Condition]:
        """Every condition, in the order of the object."""
        return map(Condition, objects_in(self.raw, "conditions"))

    def get(self, kind: str) -> Condition | None:
        """Return the condition of a type, or None."""
        found = self._find(kind)
        return Condition(found) if found is not None else None

    def is_true(self, kind: str) -> bool:
        """Say whether a condition is there and holds."""
        found = self._find(kind)
        return found is not None and found.get("status") == "True"

    def is_false(self, kind: str) -> bool:
        """Say whether a condition is there and was observed not to hold."""
        found = self._find(kind)
        return found is not None and found.get("status") == "False"

    def since(self, kind: str, status: str = "True") -> float:
        """Return since when a condition has a status, in seconds since 1970; 0 if it has not."""
        found = self._find(kind)
        if found is None or found.get("status") != status:
            return 0.0
        return Condition(found).since

    def reason(self, kind: str) -> str:
        """Return the reason of a condition; empty without one."""
        found = self._find(kind)
        return Condition(found).reason if found is not None else ""

    def message(self, kind: str) -> str:
        """Return the message of a condition; empty without one."""
        found = self._find(kind)
        return Condition(found).message if found is not None else ""

    def _find(self, kind: str) -> Raw | None:
        found = self.raw
        if type(found) is list:  # the usual case, without a generator
            for one in found:
                if type(one) is not dict:
                    break
                if one.get("type") == kind:
                    return one
            else:
                return None
        for one in objects_in(found, "conditions"):
            if one.get("type") == kind:
                return one
        return None


class Status(View):
    """The status of any kind that has conditions."""

    __slots__ = ()

    observed_generation = Number("observedGeneration")

    @property
    def conditions(self) -> Conditions:
        """What was observed."""
        return Conditions(self.raw.get("conditions"))


class OwnerReference(View):
    """The object that this one belongs to."""

    __slots__ = ()

    api_version = Text("apiVersion")
    kind = Text("kind")
    name = Text("name")
    uid = Text("uid")
    is_controller = Flag("controller")

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api_version.rpartition("/")[0]


class ObjectMeta(View):
    """An object's name, namespace and history."""

    __slots__ = ()

    name = Text("name")
    generate_name = Text("generateName")
    namespace = Text("namespace")
    uid = Text("uid")
    labels = TextMap("labels")
    annotations = TextMap("annotations")
    owner_references = Parts("ownerReferences", OwnerReference)
    finalizers = Texts("finalizers")
    creation_timestamp = Text("creationTimestamp")
    deletion_timestamp = Text("deletionTimestamp")
    deletion_grace_period_seconds = NumberIfAny("deletionGracePeriodSeconds")
    resource_version = Text("resourceVersion")
    generation = Number("generation")

    @property
    def created(self) -> float:
        """When it was created, in seconds since 1970; 0 if it was not yet."""
        return seconds_of(self.creation_timestamp)

    @property
    def is_terminating(self) -> bool:
        """Whether it was deleted and is still there, for its finalizers or its grace period."""
        return self.raw.get("deletionTimestamp") is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that made it and looks after it; None without one."""
        for owner in self.owner_references:
            if owner.is_controller:
                return owner
        return None


class Object(View):
    """An object of any kind; the names that everything asks for need no `metadata`."""

    __slots__ = ()

    api_version = Text("apiVersion")
    kind = Text("kind")
    metadata = Part("metadata", ObjectMeta)

    @property
    def name(self) -> str:
        """Its name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Its namespace; empty for kinds without."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """What no other object ever has."""
        return self.metadata.uid

    @property
    def group(self) -> str:
        """The API group of its kind; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def is_terminating(self) -> bool:
        """Whether it was deleted and is still there, for its finalizers or its grace period."""
        return self.metadata.is_terminating

    @property
    def conditions(self) -> Conditions:
        """The conditions of its status."""
        status = self.raw.get("status")
        if status is None:
            return Conditions(None)
        if not isinstance(status, dict):
            raise Malformed("status", "an object", status)
        return Conditions(status.get("conditions"))


class List(View):
    """The answer to a list request."""

    __slots__ = ()

    items = Raws("items")


def owner_uids(obj: Raw) -> list[str]:
    """Return the uids of the objects that an object belongs to."""
    return [owner.uid for owner in Object(obj).metadata.owner_references]
