"""Random writes are answered alike: by the embedded server and by a real one.

Each sequence of writes goes to both. Codes, reasons, causes, objects, owners of fields, generations
and whether anything changed at all must be equal after each write. What may differ is named below.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.client import Answer, Api, Manifest
from tests.conformance.random_writes import KINDS, Write, sequence
from tests.conformance.servers import embedded, real
from tests.conformance.widgets import GROUP, define, widget_definition
from tests.real.control_plane import ControlPlane

pytestmark = [pytest.mark.real, pytest.mark.slow]

SEQUENCES = 40
# More of the same.
_MORE_BLOCKS = [pytest.param(block, marks=pytest.mark.exhaustive) for block in (1, 2)]


@pytest.fixture(scope="module")
def both(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Api, Api]]:
    """Return the ways to the real and to the embedded server."""
    with embedded(tmp_path_factory.mktemp("embedded")) as ours:
        servers = (real(control_plane), ours)
        first, second = (Api(server.url, server.ca_file, server.token) for server in servers)
        for api in (first, second):
            definitions = api.of("apiextensions.k8s.io/v1", "customresourcedefinitions")
            if definitions.read(f"widgets.{GROUP}").code == 404:
                define(api, widget_definition())
        yield first, second
        first.close()
        second.close()


def test_what_both_serve_is_described_alike(both: tuple[Api, Api]) -> None:
    theirs, ours = (_resources(api) for api in both)
    shared = sorted(theirs.keys() & ours.keys())
    assert ("v1", "pods") in shared
    assert {key: ours[key] for key in shared} == {key: theirs[key] for key in shared}


def _resources(api: Api) -> dict[tuple[str, str], Manifest]:
    """Return what discovery says of every resource, without the order of verbs."""
    groups = api.get("/apis").ok()["groups"]
    versions = [each["groupVersion"] for group in groups for each in group["versions"]]
    paths = {"v1": "/api/v1", **{version: f"/apis/{version}" for version in versions}}
    found = {}
    for version, path in paths.items():
        for resource in api.get(path).ok()["resources"]:
            resource.pop("storageVersionHash", None)
            resource["verbs"] = sorted(resource["verbs"])
            ours_too = [name for name in resource.pop("categories", ()) if name != "unisono"]
            found[version, resource["name"]] = {**resource, "categories": ours_too}
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [0, *_MORE_BLOCKS])
def test_random_writes(both: tuple[Api, Api], kind: str, block: int) -> None:
    for seed in range(block * SEQUENCES, (block + 1) * SEQUENCES):
        writes = sequence(kind, seed)
        theirs, ours = (_outcomes(api, kind, writes) for api in both)
        for number, (wanted, got) in enumerate(zip(theirs, ours, strict=True)):
            _forgive(kind, wanted, got)
            if _is_made_null(kind, wanted, got):
                break
            assert got == wanted, _story(kind, seed, writes[: number + 1], wanted, got)


def _forgive(kind: str, wanted: Manifest, got: Manifest) -> None:
    """Make equal what need not be.

    Two refusals may differ in further causes if they name one mistake alike. A real server stores
    a new Job once more at the first write that changes nothing.
    """
    shared = set(wanted.get("causes", ())) & set(got.get("causes", ()))
    if shared:
        wanted["causes"] = got["causes"] = sorted(shared)
    if kind == "Job" and wanted.get("changed") and not got.get("changed"):
        wanted["changed"] = got.get("changed")


def _is_made_null(kind: str, wanted: Manifest, got: Manifest) -> bool:
    """Say whether the real server refused a null that it had made itself of an emptied map."""
    reasons = {reason for reason, _ in wanted.get("causes", ())}
    return kind == "Widget" and reasons == {"FieldValueTypeInvalid"} and "object" in got


def _outcomes(api: Api, kind: str, writes: list[Write]) -> list[Manifest]:
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "same-"}}
    namespace = api.of("v1", "namespaces").create(manifest).ok(201)["metadata"]["name"]
    things = api.of(*KINDS[kind], namespace)
    outcomes = []
    version = ""
    for write in writes:
        outcome, version = _outcome(write.send(things), version)
        outcomes.append(outcome)
    return outcomes


def _outcome(answer: Answer, version: str) -> tuple[Manifest, str]:
    """Return what must be equal, and the version of the object if there is one."""
    body = answer.json()
    if answer.code >= 400:
        return _refusal(answer.code, body), version
    metadata = body["metadata"]
    if answer.request.startswith("DELETE") and not metadata.get("finalizers"):
        return {"deleted": True}, ""  # some kinds answer with the object, others with a Status
    outcome = {"code": answer.code, "object": _comparable(body)}
    if "deletionTimestamp" not in metadata or "finalizers" in metadata:
        outcome["changed"] = metadata["resourceVersion"] != version  # unless this was its end
    return outcome, str(metadata["resourceVersion"])


def _refusal(code: int, status: Manifest) -> Manifest:
    """Return a refusal without its words.

    Where a real server blames itself (500) for what a client sent, any code that blames the client
    will do. A remark without a field (that rules were not checked) is not a cause. Whether a Job's
    template cannot change, or its pod, depends there on what its status says.
    """
    if code in (400, 422, 500) and not status.get("details", {}).get("causes"):
        return {"refused": "somehow"}
    causes = {
        (cause.get("reason", ""), cause.get("field", "").replace("template.spec", "template"))
        for cause in status.get("details", {}).get("causes", ())
        if cause.get("field") != "<nil>"
    }
    return {"refused": code, "reason": status.get("reason"), "causes": sorted(causes)}


def _comparable(thing: Manifest) -> Any:
    """Return an object without what every server makes anew, and owners in no order."""
    copy = json.loads(json.dumps(thing).replace(thing["metadata"]["uid"], "UID"))
    metadata = copy["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "namespace"):
        metadata.pop(name, None)
    if "deletionTimestamp" in metadata:
        metadata["deletionTimestamp"] = "now"
    copy["owners"] = {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in metadata.pop("managedFields", ())
    }
    # Addresses are handed out; service accounts are not there: see docs.
    for name in ("clusterIP", "clusterIPs", "serviceAccount", "serviceAccountName"):
        copy.get("spec", {}).pop(name, None)
    if metadata.get("annotations", {}).pop("unisono.dev/submitter", None):
        metadata["annotations"] = metadata["annotations"] or None
    copy["owners"] = {
        owner: fields for owner, tree in copy["owners"].items() if (fields := _shared_fields(tree))
    }
    return {**copy, "metadata": {name: value for name, value in metadata.items() if value}}


def _shared_fields(tree: Manifest) -> Manifest:
    """Return owned fields without those that only the embedded server has."""
    for name in ("f:serviceAccount", "f:serviceAccountName"):
        tree.get("f:spec", {}).pop(name, None)
    annotations = tree.get("f:metadata", {}).get("f:annotations", {})
    for name in ("f:unisono.dev/submitter", "."):  # the latter says which manager was first
        if annotations.pop(name, None) is not None and not annotations:
            del tree["f:metadata"]["f:annotations"]
    return {name: fields for name, fields in tree.items() if fields or name != "f:metadata"}


def _story(kind: str, seed: int, writes: list[Write], wanted: Manifest, got: Manifest) -> str:
    told = [f"{write.verb} by {write.manager}: {json.dumps(write.body)}" for write in writes]
    return "\n".join(
        [f"{kind}, seed {seed}; after", *told, *_differences("", wanted, got, most=10)]
    )


def _differences(path: str, wanted: Any, got: Any, *, most: int) -> list[str]:
    if isinstance(wanted, dict) and isinstance(got, dict):
        found: list[str] = []
        for name in sorted({*wanted, *got}, key=str):
            inside = _differences(f"{path}.{name}", wanted.get(name), got.get(name), most=most)
            found += inside[: most - len(found)]
        return found
    return [] if wanted == got else [f"{path}: real {wanted!r}, embedded {got!r}"]
