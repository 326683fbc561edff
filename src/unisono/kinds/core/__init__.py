"""Kubernetes' own kinds: pods, namespaces, nodes, limit ranges, priority classes.

    schema      the pod, with every field name
    cluster     the other kinds
    requests    what one pod asks for (limits: what LimitRanges make of it; nano: exact sums)
    selection   which nodes and flavors it accepts, and which it would like
    neighbours  what it demands of the pods around it
    topology    which pods must be close to each other
    validate    what Kubernetes would refuse, with field paths
    pod_sets    all of that together: templates and counts -> the pod sets of a workload
    roles       which pods of a group are alike
    links       which group of which API a pod belongs to
    pod_groups  pods that stand for themselves, and Kueue's groups of them
    nodes       nodes as placement sees them
    conditions  what controllers say about an object
    kinds       what the registry lists

Job kinds of other API groups build on `schema` and `pod_sets`.
"""
