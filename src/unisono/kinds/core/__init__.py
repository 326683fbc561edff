"""Kubernetes' own kinds: pods, namespaces, nodes, limit ranges, priority classes.

    schema        the pod, with every field name
    requests      what one pod asks for
    limit_ranges  what LimitRanges make of that
    gpu_parts     parts of a GPU, in the spellings in use
    selection     which nodes and flavors it accepts, and which it would like
    volumes       which nodes reach its volumes
    pod_rules     what it demands of the pods around it
    topology      which pods must be close to each other
    validate      what Kubernetes would refuse, with field paths
    pod_sets      all of that together: templates and counts -> the pod sets of a workload
    pod_groups    pods that form a group, in the words of each API, or stand for themselves
    nodes         nodes, and how placement sees them
    versions      old versions of these kinds, as plain dictionaries
    kinds         what the registry lists

Job kinds of other API groups build on `schema` and `pod_sets`.
"""
