"""The other kinds of the core group."""

KINDS = {
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
