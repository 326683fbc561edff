"""Manifests in, engine values out: one module or package per API group, and what they share.

    documents   bytes of YAML or JSON -> documents, with limits
    decode      a document -> a typed manifest, or every problem in it with its field path
    views       typed, read-only views of objects as informers hold them
    meta        what all objects have: metadata, label selectors, conditions
    registry    what can be said of a kind
    known       every kind there is, and the intake of their objects
    core        Kubernetes' pods and nodes; kueue, volcano, trainer, … those of others
    policy      what the operator chose
    snapshot    all documents -> one engine snapshot, with warnings
    shapes      schemas, and the definitions of custom resources

Pure: no files, no clock, no logging. Bytes and the present time are handed in.
"""
