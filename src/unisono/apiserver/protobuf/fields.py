"""The fields of all messages by their numbers, as `decode` reads them, and the kinds."""

# Metadata and the core group: pods, volumes, nodes and the small kinds.

_CORE_KINDS = {
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
    "v1 PersistentVolume": "PersistentVolume",
    "v1 PodTemplate": "PodTemplate",
    "v1 ReplicationController": "ReplicationController",
}

_CORE_MESSAGES = """
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


# ---- all other groups ----------------------------------------------------------------------------
#
# Workloads, roles and bindings, and the rest.

_GROUP_KINDS = {
    "batch/v1 Job": "Job",
    "batch/v1 CronJob": "CronJob",
    "apps/v1 Deployment": "Deployment",
    "apps/v1 ReplicaSet": "ReplicaSet",
    "apps/v1 StatefulSet": "StatefulSet",
    "apps/v1 DaemonSet": "DaemonSet",
    "apps/v1 ControllerRevision": "ControllerRevision",
    "policy/v1 PodDisruptionBudget": "PodDisruptionBudget",
    "policy/v1 Eviction": "Eviction",
    "scheduling.k8s.io/v1 PriorityClass": "PriorityClass",
    "rbac.authorization.k8s.io/v1 Role": "Role",
    "rbac.authorization.k8s.io/v1 ClusterRole": "ClusterRole",
    "rbac.authorization.k8s.io/v1 RoleBinding": "RoleBinding",
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": "ClusterRoleBinding",
    "authentication.k8s.io/v1 TokenRequest": "TokenRequest",
    "authentication.k8s.io/v1 TokenReview": "TokenReview",
    "authentication.k8s.io/v1 SelfSubjectReview": "SelfSubjectReview",
    "authorization.k8s.io/v1 SelfSubjectAccessReview": "SelfSubjectAccessReview",
    "authorization.k8s.io/v1 SelfSubjectRulesReview": "SelfSubjectRulesReview",
    "authorization.k8s.io/v1 SubjectAccessReview": "SubjectAccessReview",
    "authorization.k8s.io/v1 LocalSubjectAccessReview": "LocalSubjectAccessReview",
    "autoscaling/v1 HorizontalPodAutoscaler": "autoscaling.v1.HorizontalPodAutoscaler",
    "autoscaling/v2 HorizontalPodAutoscaler": "HorizontalPodAutoscaler",
    "autoscaling/v1 Scale": "Scale",
    "networking.k8s.io/v1 Ingress": "Ingress",
    "coordination.k8s.io/v1 Lease": "Lease",
    "events.k8s.io/v1 Event": "events.Event",
    "networking.k8s.io/v1 IngressClass": "IngressClass",
    "networking.k8s.io/v1 NetworkPolicy": "NetworkPolicy",
    "node.k8s.io/v1 RuntimeClass": "RuntimeClass",
    "resource.k8s.io/v1 DeviceClass": "DeviceClass",
    "storage.k8s.io/v1 StorageClass": "StorageClass",
}

_GROUP_MESSAGES = """
Job  1 metadata: ObjectMeta, 2 spec: JobSpec, 3 status: JobStatus
JobSpec  1 parallelism*: int, 2 completions*: int, 3 activeDeadlineSeconds*: int,
    4 selector*: LabelSelector, 5 manualSelector*: bool, 6 template*: PodTemplateSpec,
    7 backoffLimit*: int, 8 ttlSecondsAfterFinished*: int, 9 completionMode*, 10 suspend*: bool,
    11 podFailurePolicy*: PodFailurePolicy, 12 backoffLimitPerIndex*: int,
    13 maxFailedIndexes*: int, 14 podReplacementPolicy*, 15 managedBy*,
    16 successPolicy*: SuccessPolicy
PodFailurePolicy  1 rules: []PodFailurePolicyRule
PodFailurePolicyRule  1 action*, 2 onExitCodes*: PodFailurePolicyOnExitCodesRequirement,
    3 onPodConditions: []PodFailurePolicyOnPodConditionsPattern
PodFailurePolicyOnExitCodesRequirement  1 containerName*, 2 operator*, 3 values: []int
PodFailurePolicyOnPodConditionsPattern  1 type*, 2 status*
SuccessPolicy  1 rules: []SuccessPolicyRule
SuccessPolicyRule  1 succeededIndexes*, 2 succeededCount*: int
JobStatus  1 conditions: []JobCondition, 2 startTime: time, 3 completionTime: time, 4 active: int,
    5 succeeded: int, 6 failed: int, 7 completedIndexes,
    8 uncountedTerminatedPods*: UncountedTerminatedPods, 9 ready*: int, 10 failedIndexes*,
    11 terminating*: int
JobCondition  1 type*, 2 status*, 3 lastProbeTime: time, 4 lastTransitionTime: time, 5 reason,
    6 message
UncountedTerminatedPods  1 succeeded: []string, 2 failed: []string
CronJob  1 metadata: ObjectMeta, 2 spec: CronJobSpec, 3 status: CronJobStatus
CronJobSpec  1 schedule*, 2 startingDeadlineSeconds*: int, 3 concurrencyPolicy, 4 suspend*: bool,
    5 jobTemplate*: JobTemplateSpec, 6 successfulJobsHistoryLimit*: int,
    7 failedJobsHistoryLimit*: int, 8 timeZone*
JobTemplateSpec  1 metadata: ObjectMeta, 2 spec: JobSpec
CronJobStatus  1 active: []ObjectReference, 4 lastScheduleTime: time, 5 lastSuccessfulTime: time
Deployment  1 metadata: ObjectMeta, 2 spec: DeploymentSpec, 3 status: DeploymentStatus
DeploymentSpec  1 replicas*: int, 2 selector*: LabelSelector, 3 template*: PodTemplateSpec,
    4 strategy: DeploymentStrategy, 5 minReadySeconds: int, 6 revisionHistoryLimit*: int,
    7 paused: bool, 9 progressDeadlineSeconds*: int
DeploymentStrategy  1 type, 2 rollingUpdate*: RollingUpdateDeployment
RollingUpdateDeployment  1 maxUnavailable*: intOrString, 2 maxSurge*: intOrString
DeploymentStatus  1 observedGeneration: int, 2 replicas: int, 3 updatedReplicas: int,
    4 availableReplicas: int, 5 unavailableReplicas: int, 6 conditions: []DeploymentCondition,
    7 readyReplicas: int, 8 collisionCount*: int, 9 terminatingReplicas*: int
DeploymentCondition  1 type*, 2 status*, 4 reason, 5 message, 6 lastUpdateTime: time,
    7 lastTransitionTime: time
ReplicaSet  1 metadata: ObjectMeta, 2 spec: ReplicaSetSpec, 3 status: ReplicaSetStatus
ReplicaSetSpec  1 replicas*: int, 2 selector*: LabelSelector, 3 template: PodTemplateSpec,
    4 minReadySeconds: int
ReplicaSetStatus  1 replicas*: int, 2 fullyLabeledReplicas: int, 3 observedGeneration: int,
    4 readyReplicas: int, 5 availableReplicas: int, 6 conditions: []ReplicaSetCondition,
    7 terminatingReplicas*: int
ReplicaSetCondition  1 type*, 2 status*, 3 lastTransitionTime: time, 4 reason, 5 message
StatefulSet  1 metadata: ObjectMeta, 2 spec: StatefulSetSpec, 3 status: StatefulSetStatus
StatefulSetSpec  1 replicas*: int, 2 selector*: LabelSelector, 3 template*: PodTemplateSpec,
    4 volumeClaimTemplates: []PersistentVolumeClaim, 5 serviceName*, 6 podManagementPolicy,
    7 updateStrategy: StatefulSetUpdateStrategy, 8 revisionHistoryLimit*: int,
    9 minReadySeconds: int,
    10 persistentVolumeClaimRetentionPolicy*: StatefulSetPersistentVolumeClaimRetentionPolicy,
    11 ordinals*: StatefulSetOrdinals
StatefulSetUpdateStrategy  1 type, 2 rollingUpdate*: RollingUpdateStatefulSetStrategy
RollingUpdateStatefulSetStrategy  1 partition*: int, 2 maxUnavailable*: intOrString
StatefulSetPersistentVolumeClaimRetentionPolicy  1 whenDeleted, 2 whenScaled
StatefulSetOrdinals  1 start*: int
StatefulSetStatus  1 observedGeneration: int, 2 replicas*: int, 3 readyReplicas: int,
    4 currentReplicas: int, 5 updatedReplicas: int, 6 currentRevision, 7 updateRevision,
    9 collisionCount*: int, 10 conditions: []StatefulSetCondition, 11 availableReplicas*: int
StatefulSetCondition  1 type*, 2 status*, 3 lastTransitionTime: time, 4 reason, 5 message
DaemonSet  1 metadata: ObjectMeta, 2 spec: DaemonSetSpec, 3 status: DaemonSetStatus
DaemonSetSpec  1 selector*: LabelSelector, 2 template*: PodTemplateSpec,
    3 updateStrategy: DaemonSetUpdateStrategy, 4 minReadySeconds: int, 6 revisionHistoryLimit*: int
DaemonSetUpdateStrategy  1 type, 2 rollingUpdate*: RollingUpdateDaemonSet
RollingUpdateDaemonSet  1 maxUnavailable*: intOrString, 2 maxSurge*: intOrString
DaemonSetStatus  1 currentNumberScheduled*: int, 2 numberMisscheduled*: int,
    3 desiredNumberScheduled*: int, 4 numberReady*: int, 5 observedGeneration: int,
    6 updatedNumberScheduled: int, 7 numberAvailable: int, 8 numberUnavailable: int,
    9 collisionCount*: int, 10 conditions: []DaemonSetCondition
DaemonSetCondition  1 type*, 2 status*, 3 lastTransitionTime: time, 4 reason, 5 message
ControllerRevision  1 metadata: ObjectMeta, 2 data: json, 3 revision*: int
PodDisruptionBudget  1 metadata: ObjectMeta, 2 spec: PodDisruptionBudgetSpec,
    3 status: PodDisruptionBudgetStatus
PodDisruptionBudgetSpec  1 minAvailable*: intOrString, 2 selector*: LabelSelector,
    3 maxUnavailable*: intOrString, 4 unhealthyPodEvictionPolicy*
PodDisruptionBudgetStatus  1 observedGeneration: int, 2 disruptedPods: {}time,
    3 disruptionsAllowed*: int, 4 currentHealthy*: int, 5 desiredHealthy*: int,
    6 expectedPods*: int, 7 conditions: []Condition
Eviction  1 metadata: ObjectMeta, 2 deleteOptions*: DeleteOptions
PriorityClass  1 metadata: ObjectMeta, 2 value*: int, 3 globalDefault: bool, 4 description,
    5 preemptionPolicy*
Role  1 metadata: ObjectMeta, 2 rules: []PolicyRule
PolicyRule  1 verbs: []string, 2 apiGroups: []string, 3 resources: []string,
    4 resourceNames: []string, 5 nonResourceURLs: []string
ClusterRole  1 metadata: ObjectMeta, 2 rules: []PolicyRule, 3 aggregationRule*: AggregationRule
AggregationRule  1 clusterRoleSelectors: []LabelSelector
RoleBinding  1 metadata: ObjectMeta, 2 subjects: []Subject, 3 roleRef*: RoleRef
Subject  1 kind*, 2 apiGroup, 3 name*, 4 namespace
RoleRef  1 apiGroup*, 2 kind*, 3 name*
ClusterRoleBinding  1 metadata: ObjectMeta, 2 subjects: []Subject, 3 roleRef*: RoleRef
TokenRequest  1 metadata: ObjectMeta, 2 spec*: TokenRequestSpec, 3 status: TokenRequestStatus
TokenRequestSpec  1 audiences: []string, 3 boundObjectRef*: BoundObjectReference,
    4 expirationSeconds*: int
BoundObjectReference  1 kind, 2 apiVersion, 3 name, 4 uid
TokenRequestStatus  1 token*, 2 expirationTimestamp: time
TokenReview  1 metadata: ObjectMeta, 2 spec*: TokenReviewSpec, 3 status: TokenReviewStatus
TokenReviewSpec  1 token, 2 audiences: []string
TokenReviewStatus  1 authenticated: bool, 2 user: UserInfo, 3 error, 4 audiences: []string
UserInfo  1 username, 2 uid, 3 groups: []string, 4 extra: {}strings
SelfSubjectReview  1 metadata: ObjectMeta, 2 status: SelfSubjectReviewStatus
SelfSubjectReviewStatus  1 userInfo: UserInfo
SelfSubjectAccessReview  1 metadata: ObjectMeta, 2 spec*: SelfSubjectAccessReviewSpec,
    3 status: SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec  1 resourceAttributes*: ResourceAttributes,
    2 nonResourceAttributes*: NonResourceAttributes
ResourceAttributes  1 namespace, 2 verb, 3 group, 4 version, 5 resource, 6 subresource, 7 name,
    8 fieldSelector*: FieldSelectorAttributes, 9 labelSelector*: LabelSelectorAttributes
FieldSelectorAttributes  1 rawSelector, 2 requirements: []FieldSelectorRequirement
LabelSelectorAttributes  1 rawSelector, 2 requirements: []LabelSelectorRequirement
NonResourceAttributes  1 path, 2 verb
SubjectAccessReviewStatus  1 allowed*: bool, 2 reason, 3 evaluationError, 4 denied: bool
SelfSubjectRulesReview  1 metadata: ObjectMeta, 2 spec*: SelfSubjectRulesReviewSpec,
    3 status: SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec  1 namespace
SubjectRulesReviewStatus  1 resourceRules: []ResourceRule, 2 nonResourceRules: []NonResourceRule,
    3 incomplete*: bool, 4 evaluationError
ResourceRule  1 verbs: []string, 2 apiGroups: []string, 3 resources: []string,
    4 resourceNames: []string
NonResourceRule  1 verbs: []string, 2 nonResourceURLs: []string
SubjectAccessReview  1 metadata: ObjectMeta, 2 spec*: SubjectAccessReviewSpec,
    3 status: SubjectAccessReviewStatus
SubjectAccessReviewSpec  1 resourceAttributes*: ResourceAttributes,
    2 nonResourceAttributes*: NonResourceAttributes, 3 user, 4 groups: []string, 5 extra: {}strings,
    6 uid
LocalSubjectAccessReview  1 metadata: ObjectMeta, 2 spec*: SubjectAccessReviewSpec,
    3 status: SubjectAccessReviewStatus
autoscaling.v1.HorizontalPodAutoscaler  1 metadata: ObjectMeta,
    2 spec: autoscaling.v1.HorizontalPodAutoscalerSpec,
    3 status: autoscaling.v1.HorizontalPodAutoscalerStatus
autoscaling.v1.HorizontalPodAutoscalerSpec  1 scaleTargetRef*: CrossVersionObjectReference,
    2 minReplicas*: int, 3 maxReplicas*: int, 4 targetCPUUtilizationPercentage*: int
CrossVersionObjectReference  1 kind*, 2 name*, 3 apiVersion
autoscaling.v1.HorizontalPodAutoscalerStatus  1 observedGeneration*: int, 2 lastScaleTime: time,
    3 currentReplicas*: int, 4 desiredReplicas*: int, 5 currentCPUUtilizationPercentage*: int
HorizontalPodAutoscaler  1 metadata: ObjectMeta, 2 spec: HorizontalPodAutoscalerSpec,
    3 status: HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec  1 scaleTargetRef*: CrossVersionObjectReference, 2 minReplicas*: int,
    3 maxReplicas*: int, 4 metrics: []MetricSpec, 5 behavior*: HorizontalPodAutoscalerBehavior
MetricSpec  1 type*, 2 object*: ObjectMetricSource, 3 pods*: PodsMetricSource,
    4 resource*: ResourceMetricSource, 5 external*: ExternalMetricSource,
    7 containerResource*: ContainerResourceMetricSource
ObjectMetricSource  1 describedObject*: CrossVersionObjectReference, 2 target*: MetricTarget,
    3 metric*: MetricIdentifier
MetricTarget  1 type*, 2 value*: quantity, 3 averageValue*: quantity, 4 averageUtilization*: int
MetricIdentifier  1 name*, 2 selector*: LabelSelector
PodsMetricSource  1 metric*: MetricIdentifier, 2 target*: MetricTarget
ResourceMetricSource  1 name*, 2 target*: MetricTarget
ContainerResourceMetricSource  1 name*, 2 target*: MetricTarget, 3 container*
ExternalMetricSource  1 metric*: MetricIdentifier, 2 target*: MetricTarget
HorizontalPodAutoscalerBehavior  1 scaleUp*: HPAScalingRules, 2 scaleDown*: HPAScalingRules
HPAScalingRules  1 selectPolicy*, 2 policies: []HPAScalingPolicy,
    3 stabilizationWindowSeconds*: int, 4 tolerance*: quantity
HPAScalingPolicy  1 type*, 2 value*: int, 3 periodSeconds*: int
HorizontalPodAutoscalerStatus  1 observedGeneration*: int, 2 lastScaleTime: time,
    3 currentReplicas: int, 4 desiredReplicas*: int, 5 currentMetrics: []MetricStatus,
    6 conditions: []HorizontalPodAutoscalerCondition
MetricStatus  1 type*, 2 object*: ObjectMetricStatus, 3 pods*: PodsMetricStatus,
    4 resource*: ResourceMetricStatus, 5 external*: ExternalMetricStatus,
    7 containerResource*: ContainerResourceMetricStatus
ObjectMetricStatus  1 metric*: MetricIdentifier, 2 current*: MetricValueStatus,
    3 describedObject*: CrossVersionObjectReference
MetricValueStatus  1 value*: quantity, 2 averageValue*: quantity, 3 averageUtilization*: int
PodsMetricStatus  1 metric*: MetricIdentifier, 2 current*: MetricValueStatus
ResourceMetricStatus  1 name*, 2 current*: MetricValueStatus
ContainerResourceMetricStatus  1 name*, 2 current*: MetricValueStatus, 3 container*
ExternalMetricStatus  1 metric*: MetricIdentifier, 2 current*: MetricValueStatus
HorizontalPodAutoscalerCondition  1 type*, 2 status*, 3 lastTransitionTime: time, 4 reason,
    5 message
Scale  1 metadata: ObjectMeta, 2 spec: ScaleSpec, 3 status: ScaleStatus
ScaleSpec  1 replicas: int
ScaleStatus  1 replicas*: int, 2 selector
Ingress  1 metadata: ObjectMeta, 2 spec: IngressSpec, 3 status: IngressStatus
IngressSpec  1 defaultBackend*: IngressBackend, 2 tls: []IngressTLS, 3 rules: []IngressRule,
    4 ingressClassName*
IngressBackend  3 resource*: TypedLocalObjectReference, 4 service*: IngressServiceBackend
IngressServiceBackend  1 name*, 2 port: ServiceBackendPort
ServiceBackendPort  1 name, 2 number: int
IngressTLS  1 hosts: []string, 2 secretName
IngressRule  1 host, 2 .: IngressRuleValue
IngressRuleValue  1 http*: HTTPIngressRuleValue
HTTPIngressRuleValue  1 paths: []HTTPIngressPath
HTTPIngressPath  1 path, 2 backend*: IngressBackend, 3 pathType*
IngressStatus  1 loadBalancer: IngressLoadBalancerStatus
IngressLoadBalancerStatus  1 ingress: []IngressLoadBalancerIngress
IngressLoadBalancerIngress  1 ip, 2 hostname, 4 ports: []PortStatus
Lease  1 metadata: ObjectMeta, 2 spec: LeaseSpec
LeaseSpec  1 holderIdentity*, 2 leaseDurationSeconds*: int, 3 acquireTime: microtime,
    4 renewTime: microtime, 5 leaseTransitions*: int, 6 strategy*, 7 preferredHolder*
events.Event  1 metadata*: ObjectMeta, 2 eventTime: microtime, 3 series*: events.EventSeries,
    4 reportingController, 5 reportingInstance, 6 action, 7 reason, 8 regarding: ObjectReference,
    9 related*: ObjectReference, 10 note, 11 type, 12 deprecatedSource: EventSource,
    13 deprecatedFirstTimestamp: time, 14 deprecatedLastTimestamp: time, 15 deprecatedCount: int
events.EventSeries  1 count*: int, 2 lastObservedTime: microtime
RuntimeClass  1 metadata: ObjectMeta, 2 handler*, 3 overhead*: Overhead, 4 scheduling*: Scheduling
Overhead  1 podFixed: {}quantity
Scheduling  1 nodeSelector: {}string, 2 tolerations: []Toleration
StorageClass  1 metadata: ObjectMeta, 2 provisioner*, 3 parameters: {}string, 4 reclaimPolicy*,
    5 mountOptions: []string, 6 allowVolumeExpansion*: bool, 7 volumeBindingMode*,
    8 allowedTopologies: []TopologySelectorTerm
TopologySelectorTerm  1 matchLabelExpressions: []TopologySelectorLabelRequirement
TopologySelectorLabelRequirement  1 key*, 2 values: []string
NetworkPolicy  1 metadata: ObjectMeta, 2 spec: NetworkPolicySpec
NetworkPolicySpec  1 podSelector*: LabelSelector, 2 ingress: []NetworkPolicyIngressRule,
    3 egress: []NetworkPolicyEgressRule, 4 policyTypes: []string
NetworkPolicyIngressRule  1 ports: []NetworkPolicyPort, 2 from: []NetworkPolicyPeer
NetworkPolicyPort  1 protocol*, 2 port*: intOrString, 3 endPort*: int
NetworkPolicyPeer  1 podSelector*: LabelSelector, 2 namespaceSelector*: LabelSelector,
    3 ipBlock*: IPBlock
IPBlock  1 cidr*, 2 except: []string
NetworkPolicyEgressRule  1 ports: []NetworkPolicyPort, 2 to: []NetworkPolicyPeer
IngressClass  1 metadata: ObjectMeta, 2 spec: IngressClassSpec
IngressClassSpec  1 controller, 2 parameters*: IngressClassParametersReference
IngressClassParametersReference  1 apiGroup*, 2 kind*, 3 name*, 4 scope*, 5 namespace*
ReplicationController  1 metadata: ObjectMeta, 2 spec: ReplicationControllerSpec,
    3 status: ReplicationControllerStatus
ReplicationControllerSpec  1 replicas*: int, 4 minReadySeconds: int, 2 selector: {}string,
    3 template*: PodTemplateSpec
ReplicationControllerStatus  1 replicas*: int, 2 fullyLabeledReplicas: int, 4 readyReplicas: int,
    5 availableReplicas: int, 3 observedGeneration: int,
    6 conditions: []ReplicationControllerCondition
ReplicationControllerCondition  1 type*, 2 status*, 3 lastTransitionTime: time, 4 reason, 5 message
PodTemplate  1 metadata: ObjectMeta, 2 template: PodTemplateSpec
PersistentVolume  1 metadata: ObjectMeta, 2 spec: PersistentVolumeSpec,
    3 status: PersistentVolumeStatus
PersistentVolumeSpec  1 capacity: {}quantity, 2 .: PersistentVolumeSource, 3 accessModes: []string,
    4 claimRef*: ObjectReference, 5 persistentVolumeReclaimPolicy, 6 storageClassName,
    7 mountOptions: []string, 8 volumeMode*, 9 nodeAffinity*: VolumeNodeAffinity,
    10 volumeAttributesClassName*
PersistentVolumeSource  3 hostPath*: HostPathVolumeSource, 5 nfs*: NFSVolumeSource,
    20 local*: LocalVolumeSource, 22 csi*: CSIPersistentVolumeSource
SecretReference  1 name, 2 namespace
LocalVolumeSource  1 path*, 2 fsType*
CSIPersistentVolumeSource  1 driver*, 2 volumeHandle*, 3 readOnly: bool, 4 fsType,
    5 volumeAttributes: {}string, 6 controllerPublishSecretRef*: SecretReference,
    7 nodeStageSecretRef*: SecretReference, 8 nodePublishSecretRef*: SecretReference,
    9 controllerExpandSecretRef*: SecretReference, 10 nodeExpandSecretRef*: SecretReference
VolumeNodeAffinity  1 required*: NodeSelector
PersistentVolumeStatus  1 phase, 2 message, 3 reason, 4 lastPhaseTransitionTime: time
DeviceClass  1 metadata: ObjectMeta, 2 spec*: DeviceClassSpec
DeviceClassSpec  1 selectors: []DeviceSelector, 2 config: []DeviceClassConfiguration,
    4 extendedResourceName*
DeviceSelector  1 cel*: CELDeviceSelector
CELDeviceSelector  1 expression*
DeviceClassConfiguration  1 .: DeviceConfiguration
DeviceConfiguration  1 opaque*: OpaqueDeviceConfiguration
OpaqueDeviceConfiguration  1 driver*, 2 parameters*: json
"""


# Message of each kind, by `apiVersion kind`.
KINDS = {**_CORE_KINDS, **_GROUP_KINDS}
MESSAGES = _CORE_MESSAGES.rstrip() + _GROUP_MESSAGES
