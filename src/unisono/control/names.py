"""Kinds and keys that several controllers speak of."""

from __future__ import annotations

from unisono.kube.mapping import POD, Kind

__all__ = ["POD"]

KUEUE = "kueue.x-k8s.io/v1beta2"

NODE = Kind("v1", "Node")
NAMESPACE = Kind("v1", "Namespace")
SERVICE = Kind("v1", "Service")
CONFIG_MAP = Kind("v1", "ConfigMap")
SECRET = Kind("v1", "Secret")
LIMIT_RANGE = Kind("v1", "LimitRange")
PRIORITY_CLASS = Kind("scheduling.k8s.io/v1", "PriorityClass")
RUNTIME_CLASS = Kind("node.k8s.io/v1", "RuntimeClass")
DEVICE_CLASS = Kind("resource.k8s.io/v1", "DeviceClass")
CLAIM = Kind("v1", "PersistentVolumeClaim")
VOLUME = Kind("v1", "PersistentVolume")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass")
JOB = Kind("batch/v1", "Job")
CRON_JOB = Kind("batch/v1", "CronJob")
JOB_SET = Kind("jobset.x-k8s.io/v1alpha2", "JobSet")
TRAIN_JOB = Kind("trainer.kubeflow.org/v1alpha1", "TrainJob")
TRAINING_RUNTIME = Kind("trainer.kubeflow.org/v1alpha1", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIME = Kind("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime")
WORKLOAD = Kind(KUEUE, "Workload")
CLUSTER_QUEUE = Kind(KUEUE, "ClusterQueue")
LOCAL_QUEUE = Kind(KUEUE, "LocalQueue")
COHORT = Kind(KUEUE, "Cohort")
FLAVOR = Kind(KUEUE, "ResourceFlavor")
ADMISSION_CHECK = Kind(KUEUE, "AdmissionCheck")
TOPOLOGY = Kind(KUEUE, "Topology")
WORKLOAD_PRIORITY_CLASS = Kind(KUEUE, "WorkloadPriorityClass")
VOLCANO_QUEUE = Kind("scheduling.volcano.sh/v1beta1", "Queue")
POLICY = Kind("unisono.dev/v1", "Policy")
WORKLOAD_KIND = Kind("unisono.dev/v1", "WorkloadKind")
NODE_POOL = Kind("karpenter.sh/v1", "NodePool")
NODE_OVERLAY = Kind("karpenter.sh/v1alpha1", "NodeOverlay")
NODE_CLAIM = Kind("karpenter.sh/v1", "NodeClaim")
PROVISIONING_REQUEST = Kind("autoscaling.x-k8s.io/v1", "ProvisioningRequest")
REQUEST_CONFIG = Kind(KUEUE, "ProvisioningRequestConfig")
HYPER_NODE = Kind("topology.volcano.sh/v1alpha1", "HyperNode")

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
# Which workload, and which of its pod sets, a pod is of; injected when a job is started.
WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
POD_SET_LABEL = "kueue.x-k8s.io/podset"
# The index of pods by the workload they are of, as `namespace/name`.
BY_WORKLOAD = "workload"
# Where a gang stands on its way to its nodes (placement §10).
PLACEMENT = "unisono.dev/Placement"
SLOT = "unisono.dev/slot"
# On a Workload that stands for pods which exist without a job of ours: their gang.
GANG = "unisono.dev/gang"
# The gate of pods that another scheduler would take: lifted when the whole gang has its nodes.
GATE = "unisono.dev/gang"
# True while a gang gives up pods; the message says what it keeps (placement §8.7).
SHRINKING = "unisono.dev/Shrinking"
# Why a workload waits, as facts for programs; QuotaReserved says the same in words.
EXPLANATION = "unisono.dev/Explanation"
# For which workload this one was preempted, by name; Evicted says it in Kueue's words.
EVICTION = "unisono.dev/Eviction"
# What is bought for a workload, for programs and for people (provisioning §5.14).
PURCHASE = "unisono.dev/Purchase"
CAPACITY_PLANNED = "CapacityPlanned"
# Karpenter leaves a node alone that carries it, or has a pod that does.
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# The limit that a workload was started with, where it left that open, in seconds; and the same on
# its pods, in minutes.
GRANTED = "unisono.dev/GrantedLimit"
GRANTED_LIMIT = "unisono.dev/granted-limit"
# Of a short job on nodes that gangs keep whose machines are still coming: their keys.
ON_LOAN = "unisono.dev/OnLoan"
# On a Workload: pod sets whose pods come when the others run; places are kept for them.
LATER_SETS = "unisono.dev/later-sets"
# The event about the owner of what the API refused to create, as of Kubernetes' own controllers.
FAILED_CREATE = "FailedCreate"
# The finalizer that keeps a Workload, queue or flavor while something uses it.
RESOURCE_IN_USE = "kueue.x-k8s.io/resource-in-use"
# What pods that are to be scheduled by us alone name.
SCHEDULER = "unisono"
HOSTNAME = "kubernetes.io/hostname"
# The taint and the label of a node that failed and is given nothing for a while.
QUARANTINE = "unisono.dev/quarantine"
