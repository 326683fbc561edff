"""`unisono apply`: create or update objects as manifests describe them (server-side apply)."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from unisono.cli.connection import add_filenames, asked, in_plain_words, verb_parser, worst
from unisono.engine.model.errors import InvalidManifest, UnisonoError

if TYPE_CHECKING:
    from unisono.kinds.documents import Document
    from unisono.kube.client import Client

# Not the name under which our controllers write: what a person applies is the person's.
MANAGER = "unisono-apply"

EXAMPLES = """\
examples:
  unisono apply -f job.yaml
  unisono apply -f queues/ -f jobs/ -n team-a
  unisono crds kueue.x-k8s.io | unisono apply --kubeconfig other.yaml -f -
  unisono apply -f job.yaml --dry-run -o yaml

Fields that another manager set to another value are a conflict; --force-conflicts takes them over.
Objects with generateName instead of a name are created, each time anew.
"""


def parser() -> argparse.ArgumentParser:
    """Describe the arguments."""
    made = verb_parser("Create or update objects as manifests describe them.", EXAMPLES)
    add_filenames(made)
    made.add_argument(
        "--force-conflicts", action="store_true", help="take over fields of other managers"
    )
    made.add_argument(
        "--dry-run", action="store_true", help="have the API check the objects, and change nothing"
    )
    made.add_argument(
        "--validate",
        choices=("strict", "warn", "ignore"),
        default="strict",
        help="how to treat unknown fields (default: strict)",
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="output format (default: text)",
    )
    return made


def run(arguments: argparse.Namespace) -> int:
    """Apply everything, also after something was refused; the exit code is of the worst."""
    from unisono.runtime.manifest_files import documents_of

    arguments.documents = documents_of(arguments.filename)
    return asked(arguments, _apply)


async def _apply(client: Client, arguments: argparse.Namespace) -> int:
    errors: list[UnisonoError] = []
    results: list[dict[str, Any]] = []
    for document in arguments.documents:
        try:
            with in_plain_words(_place(document)):
                results.append(await _one(client, document, arguments))
        except UnisonoError as error:
            errors.append(error)
    if arguments.output != "text":
        from unisono.cli.objects import dump

        whole = {"apiVersion": "v1", "kind": "List", "items": results}
        sys.stdout.write(dump(results[0] if len(results) == 1 else whole, arguments.output))
    if errors:
        sys.stdout.flush()
        raise worst(errors)
    return 0


def _place(document: Document) -> str:
    parts = [document.file]
    if document.number > 1 or document.prefix:
        parts.append(f"document {document.number}")
    if document.prefix:
        parts.append(document.prefix)
    return ", ".join(parts)


async def _one(client: Client, document: Document, arguments: argparse.Namespace) -> dict[str, Any]:
    """Apply one object and say what became of it."""
    from unisono.kube.errors import NotFound
    from unisono.kube.mapping import Kind

    wanted = dict(document.raw)
    metadata = wanted["metadata"] = _metadata(document, arguments)
    kind = Kind(document.api_version, document.kind)
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    before = ""
    if name:
        try:
            there = await client.get(kind, name, namespace)
            before = there["metadata"]["resourceVersion"]
        except NotFound:
            pass
    made = await _write(client, wanted, kind, arguments)
    made["metadata"].pop("managedFields", None)
    if arguments.output == "text":
        label = f"{document.kind.lower()}{_group(document.api_version)}/{made['metadata']['name']}"
        now = made["metadata"].get("resourceVersion")
        verb = "created" if not before else "unchanged" if now == before else "configured"
        print(f"{label} {verb}{' (dry run)' if arguments.dry_run else ''}")
    return made


def _metadata(document: Document, arguments: argparse.Namespace) -> dict[str, Any]:
    metadata = document.raw.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise InvalidManifest(_place(document), "metadata.name: is required")
    named = metadata.get("namespace")
    if arguments.namespace and named not in (None, arguments.namespace):
        message = f"metadata.namespace is {named}, and -n says {arguments.namespace}"
        raise InvalidManifest(_place(document), message)
    return {**metadata, "namespace": arguments.namespace} if arguments.namespace else dict(metadata)


async def _write(
    client: Client, wanted: dict[str, Any], kind: Any, arguments: argparse.Namespace
) -> dict[str, Any]:
    import orjson

    from unisono.kube.calls import Call

    metadata = wanted["metadata"]
    name = metadata.get("name", "")
    path = await client.path(kind, name, metadata.get("namespace", ""))
    if "/namespaces/" not in path:
        metadata.pop("namespace", None)  # many a manifest of such a kind names one
    query = {"fieldManager": MANAGER, "fieldValidation": arguments.validate.capitalize()}
    if arguments.dry_run:
        query["dryRun"] = "All"
    if name:
        query["force"] = "true" if arguments.force_conflicts else "false"
    call = Call(
        method="PATCH" if name else "POST",
        path=path,
        query=query,
        headers={"Content-Type": f"application/{'apply-patch+yaml' if name else 'json'}"},
        body=orjson.dumps(wanted),
    )
    made: dict[str, Any] = orjson.loads((await client.caller.call(call)).body)
    return made


def _group(api_version: str) -> str:
    group = api_version.rpartition("/")[0]
    return f".{group}" if group else ""
