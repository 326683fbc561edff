"""Published CustomResourceDefinitions."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from tools.shapes.crd import read_kind

OLD = """
    kind: CustomResourceDefinition
    spec:
      group: example.com
      scope: Cluster
      names: {kind: Queue, plural: queues, singular: queue, shortNames: [q]}
      versions:
      - name: v1alpha1
        served: true
        storage: true
        schema:
          openAPIV3Schema:
            type: object
            description: Prose.
            properties:
              metadata: {type: object}
              spec: {type: object, properties: {parent: {type: string}}}
"""
NEW = """
    kind: CustomResourceDefinition
    spec:
      group: example.com
      scope: Cluster
      names: {kind: Queue, plural: queues, singular: queue, shortNames: [qu]}
      versions:
      - name: v1beta1
        served: true
        storage: true
        deprecated: true
        subresources:
          status: {}
          scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
        selectableFields: [{jsonPath: .spec.parentName}]
        additionalPrinterColumns:
        - {name: Parent, type: string, jsonPath: .spec.parentName, description: Prose.}
        schema:
          openAPIV3Schema:
            type: object
            properties:
              metadata: {type: object}
              spec: {type: object, properties: {parentName: {type: string}}}
"""


def test_versions_and_names_of_all_files(tmp_path: Path) -> None:
    files = []
    for name, text in (("old", OLD), ("new", NEW)):
        files.append(tmp_path / name)
        files[-1].write_text(dedent(text))
    kind = read_kind(files)
    assert kind["shortNames"] == ["qu", "q"]
    assert not kind["namespaced"]
    new, old = kind["versions"]
    assert (new["name"], new["storage"]) == ("v1beta1", True)
    assert (old["name"], old["storage"]) == ("v1alpha1", False)
    assert new["deprecated"]
    assert new["subresources"] == ["status", "scale"]
    assert new["scale"] == {"spec": ".spec.size", "status": ".status.size", "selector": ""}
    assert new["selectable"] == [".spec.parentName"]
    assert new["columns"] == [{"name": "Parent", "type": "string", "jsonPath": ".spec.parentName"}]
    assert old["schema"]["properties"]["metadata"] == {"$ref": "meta.v1.ObjectMeta"}
