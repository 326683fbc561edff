"""Autoscaling, ingress, leases, and events in their newer form."""

KINDS = {
    "autoscaling/v1 HorizontalPodAutoscaler": "autoscaling.v1.HorizontalPodAutoscaler",
    "autoscaling/v2 HorizontalPodAutoscaler": "HorizontalPodAutoscaler",
    "autoscaling/v1 Scale": "Scale",
    "networking.k8s.io/v1 Ingress": "Ingress",
    "coordination.k8s.io/v1 Lease": "Lease",
    "events.k8s.io/v1 Event": "events.Event",
}

MESSAGES = """
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
