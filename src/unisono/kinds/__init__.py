"""Manifests in, engine values out: one module per API group, and what they share.

    documents   bytes of YAML or JSON -> documents, with limits
    decode      a document -> a typed manifest, or every problem in it with its field path
    views       typed, read-only views of objects as informers hold them
    registry    which kinds there are, and what each of them can do
    candidates  which objects stand for workloads: jobs, groups of pods, pods
    gangs       pods and the object that makes a gang of them
    doors       which queue each of them goes through
    seats       which pods are on which nodes, and which workload they belong to
    world       all documents -> one engine snapshot, with warnings

Pure: no files, no clock, no logging. Bytes and the present time are handed in.
"""
