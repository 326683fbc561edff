"""`metadata`, and what can be read of an object of any kind."""

from __future__ import annotations

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
)
from unisono.kinds.views.conditions import Conditions
from unisono.kinds.views.times import seconds_of


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
