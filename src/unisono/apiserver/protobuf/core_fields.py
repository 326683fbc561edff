"""Metadata and the core group: pods, volumes, nodes and the small kinds."""

KINDS = {
    "v1 Pod": "Pod",
    "v1 PersistentVolumeClaim": "PersistentVolumeClaim",
    "v1 Node": "Node",
    "v1 Namespace": "Namespace",
    "v1 ConfigMap": "ConfigMap",
    "v1 Secret": "Secret",
    "v1 ServiceAccount": "ServiceAccount",
    "v1 Service": "Service",
    "v1 ResourceQuota": "ResourceQuota",
    "v1 Event": "Event",
    "v1 Binding": "Binding",
    "v1 LimitRange": "LimitRange",
    "v1 Endpoints": "Endpoints",
}

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
Pod  1 metadata: ObjectMeta, 2 spec: PodSpec, 3 status: PodStatus
PodSpec  1 volumes: []Volume, 2 containers: []Container, 3 restartPolicy,
    4 terminationGracePeriodSeconds*: int, 5 activeDeadlineSeconds*: int, 6 dnsPolicy,
    7 nodeSelector: {}string, 8 serviceAccountName, 9 serviceAccount, 10 nodeName,
    11 hostNetwork: bool, 12 hostPID: bool, 13 hostIPC: bool,
    14 securityContext*: PodSecurityContext, 15 imagePullSecrets: []LocalObjectReference,
    16 hostname, 17 subdomain, 18 affinity*: Affinity, 19 schedulerName,
    20 initContainers: []Container, 21 automountServiceAccountToken*: bool,
    22 tolerations: []Toleration, 23 hostAliases: []HostAlias, 24 priorityClassName,
    25 priority*: int, 26 dnsConfig*: PodDNSConfig, 27 shareProcessNamespace*: bool,
    28 readinessGates: []PodReadinessGate, 29 runtimeClassName*, 30 enableServiceLinks*: bool,
    31 preemptionPolicy*, 32 overhead: {}quantity,
    33 topologySpreadConstraints: []TopologySpreadConstraint,
    34 ephemeralContainers: []EphemeralContainer, 35 setHostnameAsFQDN*: bool, 36 os*: PodOS,
    37 hostUsers*: bool, 38 schedulingGates: []PodSchedulingGate,
    39 resourceClaims: []PodResourceClaim, 40 resources*: ResourceRequirements,
    41 hostnameOverride*, 43 schedulingGroup*: PodSchedulingGroup
Container  1 name*, 2 image, 3 command: []string, 4 args: []string, 5 workingDir,
    6 ports: []ContainerPort, 7 env: []EnvVar, 8 resources: ResourceRequirements,
    9 volumeMounts: []VolumeMount, 10 livenessProbe*: Probe, 11 readinessProbe*: Probe,
    12 lifecycle*: Lifecycle, 13 terminationMessagePath, 14 imagePullPolicy,
    15 securityContext*: SecurityContext, 16 stdin: bool, 17 stdinOnce: bool, 18 tty: bool,
    19 envFrom: []EnvFromSource, 20 terminationMessagePolicy, 21 volumeDevices: []VolumeDevice,
    22 startupProbe*: Probe, 23 resizePolicy: []ContainerResizePolicy, 24 restartPolicy*,
    25 restartPolicyRules: []ContainerRestartRule
ContainerPort  1 name, 2 hostPort: int, 3 containerPort*: int, 4 protocol, 5 hostIP
EnvFromSource  1 prefix, 2 configMapRef*: ConfigMapEnvSource, 3 secretRef*: SecretEnvSource
ConfigMapEnvSource  1 .: LocalObjectReference, 2 optional*: bool
SecretEnvSource  1 .: LocalObjectReference, 2 optional*: bool
EnvVar  1 name*, 2 value, 3 valueFrom*: EnvVarSource
EnvVarSource  1 fieldRef*: ObjectFieldSelector, 2 resourceFieldRef*: ResourceFieldSelector,
    3 configMapKeyRef*: ConfigMapKeySelector, 4 secretKeyRef*: SecretKeySelector,
    5 fileKeyRef*: FileKeySelector
ConfigMapKeySelector  1 .: LocalObjectReference, 2 key*, 3 optional*: bool
SecretKeySelector  1 .: LocalObjectReference, 2 key*, 3 optional*: bool
FileKeySelector  1 volumeName*, 2 path*, 3 key*, 4 optional*: bool
ResourceRequirements  1 limits: {}quantity, 2 requests: {}quantity, 3 claims: []ResourceClaim
ResourceClaim  1 name*, 2 request
ContainerResizePolicy  1 resourceName*, 2 restartPolicy*
ContainerRestartRule  1 action, 2 exitCodes*: ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes  1 operator, 2 values: []int
VolumeMount  1 name*, 2 readOnly: bool, 3 mountPath*, 4 subPath, 5 mountPropagation*, 6 subPathExpr,
    7 recursiveReadOnly*
VolumeDevice  1 name*, 2 devicePath*
Probe  1 .: ProbeHandler, 2 initialDelaySeconds: int, 3 timeoutSeconds: int, 4 periodSeconds: int,
    5 successThreshold: int, 6 failureThreshold: int, 7 terminationGracePeriodSeconds*: int
ProbeHandler  1 exec*: ExecAction, 2 httpGet*: HTTPGetAction, 3 tcpSocket*: TCPSocketAction,
    4 grpc*: GRPCAction
ExecAction  1 command: []string
HTTPGetAction  1 path, 2 port*: intOrString, 3 host, 4 scheme, 5 httpHeaders: []HTTPHeader
HTTPHeader  1 name*, 2 value*
TCPSocketAction  1 port*: intOrString, 2 host
GRPCAction  1 port*: int, 2 service*
Lifecycle  1 postStart*: LifecycleHandler, 2 preStop*: LifecycleHandler, 3 stopSignal*
LifecycleHandler  1 exec*: ExecAction, 2 httpGet*: HTTPGetAction, 3 tcpSocket*: TCPSocketAction,
    4 sleep*: SleepAction
SleepAction  1 seconds*: int
SecurityContext  1 capabilities*: Capabilities, 2 privileged*: bool,
    3 seLinuxOptions*: SELinuxOptions, 4 runAsUser*: int, 5 runAsNonRoot*: bool,
    6 readOnlyRootFilesystem*: bool, 7 allowPrivilegeEscalation*: bool, 8 runAsGroup*: int,
    9 procMount*, 10 windowsOptions*: WindowsSecurityContextOptions,
    11 seccompProfile*: SeccompProfile, 12 appArmorProfile*: AppArmorProfile
Capabilities  1 add: []string, 2 drop: []string
SELinuxOptions  1 user, 2 role, 3 type, 4 level
WindowsSecurityContextOptions  1 gmsaCredentialSpecName*, 2 gmsaCredentialSpec*, 3 runAsUserName*,
    4 hostProcess*: bool
SeccompProfile  1 type*, 2 localhostProfile*
AppArmorProfile  1 type*, 2 localhostProfile*
EphemeralContainer  1 .: Container, 2 targetContainerName
PodSecurityContext  1 seLinuxOptions*: SELinuxOptions, 2 runAsUser*: int, 3 runAsNonRoot*: bool,
    4 supplementalGroups: []int, 5 fsGroup*: int, 6 runAsGroup*: int, 7 sysctls: []Sysctl,
    8 windowsOptions*: WindowsSecurityContextOptions, 9 fsGroupChangePolicy*,
    10 seccompProfile*: SeccompProfile, 11 appArmorProfile*: AppArmorProfile,
    12 supplementalGroupsPolicy*, 13 seLinuxChangePolicy*
Sysctl  1 name*, 2 value*
Affinity  1 nodeAffinity*: NodeAffinity, 2 podAffinity*: PodAffinity,
    3 podAntiAffinity*: PodAffinity
NodeAffinity  1 requiredDuringSchedulingIgnoredDuringExecution*: NodeSelector,
    2 preferredDuringSchedulingIgnoredDuringExecution: []PreferredSchedulingTerm
NodeSelector  1 nodeSelectorTerms: []NodeSelectorTerm
NodeSelectorTerm  1 matchExpressions: []NodeSelectorRequirement,
    2 matchFields: []NodeSelectorRequirement
NodeSelectorRequirement  1 key*, 2 operator*, 3 values: []string
PreferredSchedulingTerm  1 weight*: int, 2 preference*: NodeSelectorTerm
PodAffinity  1 requiredDuringSchedulingIgnoredDuringExecution: []PodAffinityTerm,
    2 preferredDuringSchedulingIgnoredDuringExecution: []WeightedPodAffinityTerm
PodAffinityTerm  1 labelSelector*: LabelSelector, 2 namespaces: []string, 3 topologyKey*,
    4 namespaceSelector*: LabelSelector, 5 matchLabelKeys: []string, 6 mismatchLabelKeys: []string
WeightedPodAffinityTerm  1 weight*: int, 2 podAffinityTerm*: PodAffinityTerm
Toleration  1 key, 2 operator, 3 value, 4 effect, 5 tolerationSeconds*: int
HostAlias  1 ip*, 2 hostnames: []string
PodDNSConfig  1 nameservers: []string, 2 searches: []string, 3 options: []PodDNSConfigOption
PodDNSConfigOption  1 name, 2 value*
PodReadinessGate  1 conditionType*
TopologySpreadConstraint  1 maxSkew*: int, 2 topologyKey*, 3 whenUnsatisfiable*,
    4 labelSelector*: LabelSelector, 5 minDomains*: int, 6 nodeAffinityPolicy*, 7 nodeTaintsPolicy*,
    8 matchLabelKeys: []string
PodOS  1 name*
PodSchedulingGate  1 name*
PodResourceClaim  1 name*, 3 resourceClaimName*, 4 resourceClaimTemplateName*
PodSchedulingGroup  1 podGroupName*
PodTemplateSpec  1 metadata: ObjectMeta, 2 spec: PodSpec
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
Volume  1 name*, 2 .: VolumeSource
VolumeSource  1 hostPath*: HostPathVolumeSource, 2 emptyDir*: EmptyDirVolumeSource,
    6 secret*: SecretVolumeSource, 7 nfs*: NFSVolumeSource,
    10 persistentVolumeClaim*: PersistentVolumeClaimVolumeSource,
    16 downwardAPI*: DownwardAPIVolumeSource, 19 configMap*: ConfigMapVolumeSource,
    26 projected*: ProjectedVolumeSource, 28 csi*: CSIVolumeSource,
    29 ephemeral*: EphemeralVolumeSource, 30 image*: ImageVolumeSource
HostPathVolumeSource  1 path*, 2 type*
EmptyDirVolumeSource  1 medium, 2 sizeLimit*: quantity
SecretVolumeSource  1 secretName, 2 items: []KeyToPath, 3 defaultMode*: int, 4 optional*: bool
KeyToPath  1 key*, 2 path*, 3 mode*: int
NFSVolumeSource  1 server*, 2 path*, 3 readOnly: bool
PersistentVolumeClaimVolumeSource  1 claimName*, 2 readOnly: bool
DownwardAPIVolumeSource  1 items: []DownwardAPIVolumeFile, 2 defaultMode*: int
DownwardAPIVolumeFile  1 path*, 2 fieldRef*: ObjectFieldSelector,
    3 resourceFieldRef*: ResourceFieldSelector, 4 mode*: int
ObjectFieldSelector  1 apiVersion, 2 fieldPath*
ResourceFieldSelector  1 containerName, 2 resource*, 3 divisor: quantity
ConfigMapVolumeSource  1 .: LocalObjectReference, 2 items: []KeyToPath, 3 defaultMode*: int,
    4 optional*: bool
LocalObjectReference  1 name
ProjectedVolumeSource  1 sources: []VolumeProjection, 2 defaultMode*: int
VolumeProjection  1 secret*: SecretProjection, 2 downwardAPI*: DownwardAPIProjection,
    3 configMap*: ConfigMapProjection, 4 serviceAccountToken*: ServiceAccountTokenProjection,
    5 clusterTrustBundle*: ClusterTrustBundleProjection, 6 podCertificate*: PodCertificateProjection
SecretProjection  1 .: LocalObjectReference, 2 items: []KeyToPath, 4 optional*: bool
DownwardAPIProjection  1 items: []DownwardAPIVolumeFile
ConfigMapProjection  1 .: LocalObjectReference, 2 items: []KeyToPath, 4 optional*: bool
ServiceAccountTokenProjection  1 audience, 2 expirationSeconds*: int, 3 path*
ClusterTrustBundleProjection  1 name*, 2 signerName*, 3 labelSelector*: LabelSelector, 4 path*,
    5 optional*: bool
PodCertificateProjection  1 signerName, 2 keyType, 3 maxExpirationSeconds*: int,
    4 credentialBundlePath, 5 keyPath, 6 certificateChainPath, 7 userAnnotations: {}string
CSIVolumeSource  1 driver*, 2 readOnly*: bool, 3 fsType*, 4 volumeAttributes: {}string,
    5 nodePublishSecretRef*: LocalObjectReference
EphemeralVolumeSource  1 volumeClaimTemplate*: PersistentVolumeClaimTemplate
PersistentVolumeClaimTemplate  1 metadata: ObjectMeta, 2 spec*: PersistentVolumeClaimSpec
PersistentVolumeClaimSpec  1 accessModes: []string, 2 resources: VolumeResourceRequirements,
    3 volumeName, 4 selector*: LabelSelector, 5 storageClassName*, 6 volumeMode*,
    7 dataSource*: TypedLocalObjectReference, 8 dataSourceRef*: TypedObjectReference,
    9 volumeAttributesClassName*
VolumeResourceRequirements  1 limits: {}quantity, 2 requests: {}quantity
TypedLocalObjectReference  1 apiGroup*, 2 kind*, 3 name*
TypedObjectReference  1 apiGroup*, 2 kind*, 3 name*, 4 namespace*
ImageVolumeSource  1 reference, 2 pullPolicy
PersistentVolumeClaim  1 metadata: ObjectMeta, 2 spec: PersistentVolumeClaimSpec,
    3 status: PersistentVolumeClaimStatus
PersistentVolumeClaimStatus  1 phase, 2 accessModes: []string, 3 capacity: {}quantity,
    4 conditions: []PersistentVolumeClaimCondition, 5 allocatedResources: {}quantity,
    7 allocatedResourceStatuses: {}string, 8 currentVolumeAttributesClassName*,
    9 modifyVolumeStatus*: ModifyVolumeStatus
PersistentVolumeClaimCondition  1 type*, 2 status*, 3 lastProbeTime: time,
    4 lastTransitionTime: time, 5 reason, 6 message
ModifyVolumeStatus  1 targetVolumeAttributesClassName, 2 status*
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
Namespace  1 metadata: ObjectMeta, 2 spec: NamespaceSpec, 3 status: NamespaceStatus
NamespaceSpec  1 finalizers: []string
NamespaceStatus  1 phase, 2 conditions: []NamespaceCondition
NamespaceCondition  1 type*, 2 status*, 4 lastTransitionTime: time, 5 reason, 6 message
ConfigMap  1 metadata: ObjectMeta, 2 data: {}string, 3 binaryData: {}bytes, 4 immutable*: bool
Secret  1 metadata: ObjectMeta, 2 data: {}bytes, 3 type, 4 stringData: {}string, 5 immutable*: bool
ServiceAccount  1 metadata: ObjectMeta, 2 secrets: []ObjectReference,
    3 imagePullSecrets: []LocalObjectReference, 4 automountServiceAccountToken*: bool
ObjectReference  1 kind, 2 namespace, 3 name, 4 uid, 5 apiVersion, 6 resourceVersion, 7 fieldPath
Service  1 metadata: ObjectMeta, 2 spec: ServiceSpec, 3 status: ServiceStatus
ServiceSpec  1 ports: []ServicePort, 2 selector: {}string, 3 clusterIP, 4 type,
    5 externalIPs: []string, 7 sessionAffinity, 8 loadBalancerIP,
    9 loadBalancerSourceRanges: []string, 10 externalName, 11 externalTrafficPolicy,
    12 healthCheckNodePort: int, 13 publishNotReadyAddresses: bool,
    14 sessionAffinityConfig*: SessionAffinityConfig, 17 ipFamilyPolicy*, 18 clusterIPs: []string,
    19 ipFamilies: []string, 20 allocateLoadBalancerNodePorts*: bool, 21 loadBalancerClass*,
    22 internalTrafficPolicy*, 23 trafficDistribution*
ServicePort  1 name, 2 protocol, 3 port*: int, 4 targetPort: intOrString, 5 nodePort: int,
    6 appProtocol*
SessionAffinityConfig  1 clientIP*: ClientIPConfig
ClientIPConfig  1 timeoutSeconds*: int
ServiceStatus  1 loadBalancer: LoadBalancerStatus, 2 conditions: []Condition
LoadBalancerStatus  1 ingress: []LoadBalancerIngress
LoadBalancerIngress  1 ip, 2 hostname, 3 ipMode*, 4 ports: []PortStatus
PortStatus  1 port*: int, 2 protocol*, 3 error*
ResourceQuota  1 metadata: ObjectMeta, 2 spec: ResourceQuotaSpec, 3 status: ResourceQuotaStatus
ResourceQuotaSpec  1 hard: {}quantity, 2 scopes: []string, 3 scopeSelector*: ScopeSelector
ScopeSelector  1 matchExpressions: []ScopedResourceSelectorRequirement
ScopedResourceSelectorRequirement  1 scopeName*, 2 operator*, 3 values: []string
ResourceQuotaStatus  1 hard: {}quantity, 2 used: {}quantity
Event  1 metadata*: ObjectMeta, 2 involvedObject*: ObjectReference, 3 reason, 4 message,
    5 source: EventSource, 6 firstTimestamp: time, 7 lastTimestamp: time, 8 count: int, 9 type,
    10 eventTime: microtime, 11 series*: EventSeries, 12 action, 13 related*: ObjectReference,
    14 reportingComponent*, 15 reportingInstance*
EventSource  1 component, 2 host
EventSeries  1 count: int, 2 lastObservedTime: microtime
Binding  1 metadata: ObjectMeta, 2 target*: ObjectReference
LimitRange  1 metadata: ObjectMeta, 2 spec: LimitRangeSpec
LimitRangeSpec  1 limits: []LimitRangeItem
LimitRangeItem  1 type*, 2 max: {}quantity, 3 min: {}quantity, 4 default: {}quantity,
    5 defaultRequest: {}quantity, 6 maxLimitRequestRatio: {}quantity
Endpoints  1 metadata: ObjectMeta, 2 subsets: []EndpointSubset
EndpointSubset  1 addresses: []EndpointAddress, 2 notReadyAddresses: []EndpointAddress,
    3 ports: []EndpointPort
EndpointAddress  1 ip*, 2 targetRef*: ObjectReference, 3 hostname, 4 nodeName*
EndpointPort  1 name, 2 port*: int, 3 protocol, 4 appProtocol*
"""
