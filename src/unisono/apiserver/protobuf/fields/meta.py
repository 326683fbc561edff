"""Metadata, selectors, conditions and the options of a deletion."""

MESSAGES = """
ObjectMeta  1 name, 2 generateName, 3 namespace, 4 selfLink, 5 uid, 6 resourceVersion,
    7 generation: int, 8 creationTimestamp: time, 9 deletionTimestamp: time,
    10 deletionGracePeriodSeconds*: int, 11 labels: {}string, 12 annotations: {}string,
    13 ownerReferences: []OwnerReference, 14 finalizers: []string,
    17 managedFields: []ManagedFieldsEntry
OwnerReference  1 kind*, 3 name*, 4 uid*, 5 apiVersion*, 6 controller*: bool,
    7 blockOwnerDeletion*: bool
ManagedFieldsEntry  1 manager, 2 operation, 3 apiVersion, 4 time: time, 6 fieldsType,
    7 fieldsV1*: json, 8 subresource
Condition  1 type*, 2 status*, 3 observedGeneration: int, 4 lastTransitionTime: time, 5 reason*,
    6 message*
LabelSelector  1 matchLabels: {}string, 2 matchExpressions: []LabelSelectorRequirement
LabelSelectorRequirement  1 key*, 2 operator*, 3 values: []string
DeleteOptions  1 gracePeriodSeconds*: int, 2 preconditions*: Preconditions,
    3 orphanDependents*: bool, 4 propagationPolicy*, 5 dryRun: []string,
    6 ignoreStoreReadErrorWithClusterBreakingPotential*: bool
Preconditions  1 uid*, 2 resourceVersion*
FieldSelectorRequirement  1 key*, 2 operator*, 3 values: []string
"""
