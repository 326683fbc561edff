"""Kubernetes' own kinds: pods, namespaces, nodes, limit ranges, priority classes.

    schema      the pod, with every field name
    cluster     the other kinds
    requests    what one pod asks for (limits: what LimitRanges make of it; nano: exact sums)
    selection   which nodes and flavors it accepts
    topology    which pods must be close to each other
    validate    what Kubernetes would refuse, with field paths
    pod_sets    all of that together: templates and counts -> the pod sets of a workload
    pod_groups  pods that stand for themselves
    conditions  what controllers say about an object
    kinds       what the registry lists

Job kinds of other API groups build on `schema` and `pod_sets`.
"""
