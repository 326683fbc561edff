"""`kueue.x-k8s.io`: queues, quota and workloads, in the versions that users have.

queues, flavors, workloads     the objects as they are written
versions                       v1alpha1 and v1beta1 to v1beta2, and back
quota_rules, queue_rules,      what is refused or forgiven, and conversion to engine values
workload_rules
kinds                          all of it, for the registry
"""
