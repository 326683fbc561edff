"""What a pod and a pod template ask for."""

KINDS = {
    "v1 Pod": "Pod",
}

MESSAGES = """
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
"""
