"""Every field name of Kubernetes' pod is known, and none else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.manifests import check, read
from unisono.kinds.decode import encode

# A pod in which every field of v1 is used at least once.
FULL_POD = """
apiVersion: v1
kind: Pod
metadata:
  name: everything
  labels: {app: x}
  annotations: {a: b}
  creationTimestamp: null
spec:
  activeDeadlineSeconds: 60
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: zone, operator: In, values: [a]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: zone, operator: Exists}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: zone, labelSelector: {matchLabels: {app: x}}}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, podAffinityTerm: {topologyKey: zone}}
  automountServiceAccountToken: false
  containers:
  - name: main
    image: busybox
    args: [a]
    command: [sh]
    env:
    - {name: A, value: b}
    - {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    envFrom: [{configMapRef: {name: x}}]
    imagePullPolicy: Always
    lifecycle: {preStop: {exec: {command: [sh]}}}
    livenessProbe: {tcpSocket: {port: 80}}
    ports: [{containerPort: 80, hostPort: 80, hostIP: 127.0.0.1, name: http, protocol: TCP}]
    readinessProbe: {httpGet: {port: http}}
    resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
    resources: {requests: {cpu: 1}, limits: {cpu: "2"}, claims: [{name: gpu}]}
    restartPolicy: Always
    restartPolicyRules: [{action: Restart}]
    securityContext: {runAsUser: 1}
    startupProbe: {grpc: {port: 1}}
    stdin: true
    stdinOnce: true
    terminationMessagePath: /x
    terminationMessagePolicy: File
    tty: true
    volumeDevices: [{name: d, devicePath: /d}]
    volumeMounts:
    - name: v
      mountPath: /v
      subPath: s
      subPathExpr: s
      readOnly: true
      recursiveReadOnly: Disabled
      mountPropagation: None
    workingDir: /
  dnsConfig: {nameservers: [1.1.1.1]}
  dnsPolicy: Default
  enableServiceLinks: true
  ephemeralContainers: [{name: debug, targetContainerName: main}]
  hostAliases: [{ip: 127.0.0.1, hostnames: [x]}]
  hostIPC: true
  hostNetwork: true
  hostPID: true
  hostUsers: false
  hostname: x
  hostnameOverride: x
  imagePullSecrets: [{name: x}]
  initContainers: [{name: side, restartPolicy: Always}]
  nodeName: n1
  nodeSelector: {zone: a}
  os: {name: linux}
  overhead: {cpu: 100m}
  preemptionPolicy: Never
  priority: 7
  priorityClassName: high
  readinessGates: [{conditionType: x}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: x}]
  resources: {requests: {cpu: 4}}
  restartPolicy: Never
  runtimeClassName: kata
  schedulerName: unisono
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  schedulingGroup: {podGroupName: x}
  securityContext: {fsGroup: 1}
  serviceAccount: x
  serviceAccountName: x
  setHostnameAsFQDN: true
  shareProcessNamespace: true
  subdomain: x
  terminationGracePeriodSeconds: 30
  tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {app: x}}
    minDomains: 1
    nodeAffinityPolicy: Honor
    nodeTaintsPolicy: Ignore
    matchLabelKeys: [a]
  volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 64Gi}}]
status:
  phase: Running
  conditions: [{type: Ready, status: "True", lastProbeTime: null, lastTransitionTime: null}]
  containerStatuses: [{name: main, ready: true}]
  ephemeralContainerStatuses: []
  hostIP: 10.0.0.1
  hostIPs: [{ip: 10.0.0.1}]
  initContainerStatuses: []
  message: x
  nominatedNodeName: n1
  observedGeneration: 1
  podIP: 10.1.0.1
  podIPs: [{ip: 10.1.0.1}]
  qosClass: Burstable
  reason: x
  resize: InProgress
  resourceClaimStatuses: []
  extendedResourceClaimStatus: {}
  allocatedResources: {cpu: 1}
  resources: {}
  startTime: "2026-01-01T00:00:00Z"
"""


def test_every_field_is_known() -> None:
    pod = read(FULL_POD)
    assert pod.spec.host_ipc is True
    assert pod.spec.set_hostname_as_fqdn is True
    assert pod.spec.init_containers[0].is_sidecar
    assert pod.status.pod_ip == "10.1.0.1"


def test_a_pod_survives_being_written_out() -> None:
    raw = encode(read(FULL_POD))
    assert raw["spec"]["hostIPC"] is True
    assert raw["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2"}
    assert raw["spec"]["topologySpreadConstraints"][0]["minDomains"] == 1


@pytest.mark.parametrize(
    ("before", "after", "path", "message"),
    [
        ("nodeSelector:", "nodeSelectors:", "spec.nodeSelectors", "nodeSelector"),
        ("image: busybox", "imagee: busybox", "spec.containers[0].imagee", "image"),
        ("limits:", "limit:", "spec.containers[0].resources.limit", "limits"),
        ("topologyKey: zone\n    when", "topolgyKey: zone\n    when", "", "topologyKey"),
    ],
)
def test_a_misspelt_field_is_found(before: str, after: str, path: str, message: str) -> None:
    found = check(FULL_POD.replace(before, after, 1))
    at, said = found[0]
    assert path in at
    assert said == f'unknown field; did you mean "{message}"?'


def test_types_are_checked() -> None:
    found = check(FULL_POD.replace("value: b", "value: 1").replace("cpu: 4", "cpu: four"))
    assert found == [
        (
            "spec.containers[0].env[0].value",
            "must be a string, not the number 1; put it in quotes",
        ),
        (
            "spec.resources.requests[cpu]",
            '"four" is not a quantity; write it like 4, 500m or 64Gi',
        ),
    ]


def test_null_counts_as_absent() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c}]}\n"
    pod: Any = read(text + "status: null\n")
    assert pod.status.phase == ""
