"""Nodes: what they have and how they are."""

KINDS = {
    "v1 Node": "Node",
}

MESSAGES = """
Node  1 metadata: ObjectMeta, 2 spec: NodeSpec, 3 status: NodeStatus
NodeSpec  1 podCIDR, 2 externalID, 3 providerID, 4 unschedulable: bool, 5 taints: []Taint,
    7 podCIDRs: []string
Taint  1 key*, 2 value, 3 effect*, 4 timeAdded: time
NodeStatus  1 capacity: {}quantity, 2 allocatable: {}quantity, 3 phase,
    4 conditions: []NodeCondition, 5 addresses: []NodeAddress,
    6 daemonEndpoints: NodeDaemonEndpoints, 7 nodeInfo: NodeSystemInfo, 8 images: []ContainerImage,
    9 volumesInUse: []string, 10 volumesAttached: []AttachedVolume,
    12 runtimeHandlers: []NodeRuntimeHandler, 13 features*: NodeFeatures,
    14 declaredFeatures: []string
NodeCondition  1 type*, 2 status*, 3 lastHeartbeatTime: time, 4 lastTransitionTime: time, 5 reason,
    6 message
NodeAddress  1 type*, 2 address*
NodeDaemonEndpoints  1 kubeletEndpoint: DaemonEndpoint
DaemonEndpoint  1 Port*: int
NodeSystemInfo  1 machineID*, 2 systemUUID*, 3 bootID*, 4 kernelVersion*, 5 osImage*,
    6 containerRuntimeVersion*, 7 kubeletVersion*, 8 kubeProxyVersion*, 9 operatingSystem*,
    10 architecture*, 11 swap*: NodeSwapStatus
NodeSwapStatus  1 capacity*: int
ContainerImage  1 names: []string, 2 sizeBytes: int
AttachedVolume  1 name*, 2 devicePath*
NodeRuntimeHandler  1 name*, 2 features*: NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures  1 recursiveReadOnlyMounts*: bool, 2 userNamespaces*: bool
NodeFeatures  1 supplementalGroupsPolicy*: bool
"""
