"""How a pod and its containers are."""

MESSAGES = """
PodStatus  1 phase, 2 conditions: []PodCondition, 3 message, 4 reason, 5 hostIP, 6 podIP,
    7 startTime: time, 8 containerStatuses: []ContainerStatus, 9 qosClass,
    10 initContainerStatuses: []ContainerStatus, 11 nominatedNodeName, 12 podIPs: []PodIP,
    13 ephemeralContainerStatuses: []ContainerStatus, 14 resize,
    15 resourceClaimStatuses: []PodResourceClaimStatus, 16 hostIPs: []HostIP,
    17 observedGeneration: int, 18 extendedResourceClaimStatus*: PodExtendedResourceClaimStatus,
    19 allocatedResources: {}quantity, 20 resources*: ResourceRequirements,
    21 nodeAllocatableResourceClaimStatuses: []NodeAllocatableResourceClaimStatus
PodCondition  1 type*, 2 status*, 3 lastProbeTime: time, 4 lastTransitionTime: time, 5 reason,
    6 message, 7 observedGeneration: int
HostIP  1 ip*
PodIP  1 ip*
ContainerStatus  1 name*, 2 state: ContainerState, 3 lastState: ContainerState, 4 ready*: bool,
    5 restartCount*: int, 6 image*, 7 imageID*, 8 containerID, 9 started*: bool,
    10 allocatedResources: {}quantity, 11 resources*: ResourceRequirements,
    12 volumeMounts: []VolumeMountStatus, 13 user*: ContainerUser,
    14 allocatedResourcesStatus: []ResourceStatus, 15 stopSignal*
ContainerState  1 waiting*: ContainerStateWaiting, 2 running*: ContainerStateRunning,
    3 terminated*: ContainerStateTerminated
ContainerStateWaiting  1 reason, 2 message
ContainerStateRunning  1 startedAt: time
ContainerStateTerminated  1 exitCode*: int, 2 signal: int, 3 reason, 4 message, 5 startedAt: time,
    6 finishedAt: time, 7 containerID
VolumeMountStatus  1 name*, 2 mountPath*, 3 readOnly: bool, 4 recursiveReadOnly*,
    5 volumeStatus*: VolumeStatus
VolumeStatus  1 image*: ImageVolumeStatus
ImageVolumeStatus  1 imageRef
ContainerUser  1 linux*: LinuxContainerUser
LinuxContainerUser  1 uid*: int, 2 gid*: int, 3 supplementalGroups: []int
ResourceStatus  1 name*, 2 resources: []ResourceHealth
ResourceHealth  1 resourceID*, 2 health, 6 message*
PodResourceClaimStatus  1 name*, 2 resourceClaimName*
PodExtendedResourceClaimStatus  1 requestMappings: []ContainerExtendedResourceRequest,
    2 resourceClaimName*
ContainerExtendedResourceRequest  1 containerName*, 2 resourceName*, 3 requestName*
NodeAllocatableResourceClaimStatus  1 resourceClaimName*, 2 containers: []string,
    3 resources: {}quantity
"""
