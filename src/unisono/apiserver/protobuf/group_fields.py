"""Kinds of all other groups: workloads, roles and bindings, and the rest."""

KINDS = {
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
}

MESSAGES = """
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
"""
