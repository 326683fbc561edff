"""Controllers of kinds that keep pods running: what Kubernetes' own do, for the embedded cluster.

replica_sets      ReplicaSet and ReplicationController: so many equal pods
deployments       Deployment: ReplicaSets, one for each revision, replaced step by step
stateful_sets     StatefulSet: pods with lasting names and storage, in order
daemon_sets       DaemonSet: a pod on every node
leader_worker_sets  LeaderWorkerSet: groups of pods, each a gang
revisions         ControllerRevisions of the last two
adoption          pods without an owner that a selector matches
autoscaler        HorizontalPodAutoscaler: how many replicas there are to be

On a real cluster its own controllers do all of this; we only queue the pods. Like all controllers
they keep nothing in memory: pods and ReplicaSets have names that follow from why they exist, so
that a crash between any two writes makes no pod twice.
"""

from __future__ import annotations

from unisono.kube.mapping import Kind

DEPLOYMENT = Kind("apps/v1", "Deployment")
REPLICA_SET = Kind("apps/v1", "ReplicaSet")
STATEFUL_SET = Kind("apps/v1", "StatefulSet")
DAEMON_SET = Kind("apps/v1", "DaemonSet")
CONTROLLER_REVISION = Kind("apps/v1", "ControllerRevision")
REPLICATION_CONTROLLER = Kind("v1", "ReplicationController")

LEADER_WORKER_SET = Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
AUTOSCALER = Kind("autoscaling/v2", "HorizontalPodAutoscaler")

KINDS = (
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    CONTROLLER_REVISION,
    REPLICATION_CONTROLLER,
    LEADER_WORKER_SET,
    AUTOSCALER,
)
