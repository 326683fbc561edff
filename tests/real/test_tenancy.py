"""What tenants may not write on a real cluster, said by its API server: the embedded API's rules.

People here are impersonated, so that the server asks their roles only. Everything is
a dry run on the server: it goes through admission and leaves nothing behind.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.test_huge_counts import _ray, _ray_job, _ray_spec, _slurm
from tests.control.training_world import job_set, replicated
from tests.real.cluster import account as service_account
from tests.real.cluster import kubectl, put, replica, until
from tests.real.control_plane import ControlPlane
from unisono.kube.form import Json

pytestmark = [pytest.mark.real, pytest.mark.slow]

HOME = "team-a"
TENANT = ("--as=tenant",)  # has unisono:batch-user in one namespace, and nothing else
EDITOR = ("--as=editor",)  # may also create pods there, as Kubernetes' own `edit` has it
WORD = "kueue.x-k8s.io/workload"


def bound(name: str, role: str, user: str) -> Json:
    """Return a binding of a role to a user, in the tenants' namespace."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": HOME},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }


def role(name: str, *rules: tuple[str, list[str], list[str]]) -> Json:
    """Return a role with rules of group, resources and verbs."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [group], "resources": resources, "verbs": verbs}
            for group, resources, verbs in rules
        ],
    }


@pytest.fixture(scope="module")
def cluster(deployed: ControlPlane) -> ControlPlane:
    """Have a namespace with a tenant and an editor, and rules that are in force."""
    put(
        deployed,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}},
        bound("tenants", "unisono:batch-user", "tenant"),
        # No controller aggregates roles here, so that `edit` itself is empty.
        role("editor", ("", ["pods"], ["create", "get", "patch"]), ("apps", ["*"], ["create"])),
        bound("editors", "editor", "editor"),
    )
    # Rights count a moment after they were stored.
    until("tenants have rights", lambda: tried(deployed, TENANT, batch_job()) == "")
    until("editors have rights", lambda: tried(deployed, EDITOR, pod()) == "")
    return deployed


def tried(plane: ControlPlane, account: tuple[str, ...], obj: Json) -> str:
    """Create an object under an account, in a dry run; return why that was refused, or nothing."""
    text = {**obj, "metadata": {**obj["metadata"], "namespace": HOME}}
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(plane.kubeconfig), *account, *_DRY],
        input=json.dumps(text),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert bool(done.returncode) == bool(done.stderr), done.stderr
    return done.stderr


_DRY = ("create", "--dry-run=server", "-f", "-")


def pod_template(**spec: Any) -> Json:
    """Return what makes a pod."""
    return {
        "metadata": {},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "train:1"}],
            **spec,
        },
    }


def batch_job(**metadata: Any) -> Json:
    """Return a Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", **metadata},
        "spec": {"template": pod_template()},
    }


def pod(**metadata: Any) -> Json:
    """Return a pod."""
    named = {"name": "p", **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": pod_template()["spec"]}


def cron_job() -> Json:
    """Return a CronJob."""
    spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": pod_template()}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}


def slurm_job() -> Json:
    """Return a SlurmJob."""
    return _slurm()


def train_job() -> Json:
    """Return a TrainJob."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "metadata": {}}],
        },
    }


RAY = _ray(_ray_spec(1, replicas=1))
RAY_JOB = _ray_job(1, replicas=1)
RAY_JOB["spec"]["submitterPodTemplate"] = pod_template()
# One of every kind, and where it has a template of pods.
MADE = {
    "Job": (batch_job(), "spec/template"),
    "CronJob": (cron_job(), "spec/jobTemplate/spec/template"),
    "JobSet": (job_set(replicated(gpus=1)), "spec/replicatedJobs/0/template/spec/template"),
    "PyTorchJob": (torch(), "spec/pytorchReplicaSpecs/Worker/template"),
    "RayCluster head": (RAY, "spec/headGroupSpec/template"),
    "RayCluster": (RAY, "spec/workerGroupSpecs/0/template"),
    "RayJob": (RAY_JOB, "spec/rayClusterSpec/workerGroupSpecs/0/template"),
    "RayJob submitter": (RAY_JOB, "spec/submitterPodTemplate"),
    "Volcano Job": (vcjob(task("w", 2)), "spec/tasks/0/template"),
    "SlurmJob": (slurm_job(), "spec/groups/0/template"),
    "TrainJob": (train_job(), "spec/podTemplateOverrides/0"),
}


def with_(obj: Json, path: str, value: Any) -> Json:
    """Return a copy that has something at a place."""
    copied: Json = json.loads(json.dumps(obj))
    *above, last = path.split("/")
    here: Any = copied
    for name in above:
        here = here[int(name)] if isinstance(here, list) else here.setdefault(name, {})
    here[last] = value
    return copied


@pytest.mark.parametrize("kind", MADE)
def test_tenants_write_no_decision_into_a_job(cluster: ControlPlane, kind: str) -> None:
    made, template = MADE[kind]
    assert tried(cluster, TENANT, made) == ""
    if kind != "TrainJob":  # which has no such field
        chosen = with_(made, f"{template}/spec/nodeName", "n1")
        assert "only users who may create pods/binding" in tried(cluster, TENANT, chosen)
        assert tried(cluster, (), chosen) == ""
    word = with_(made, f"{template}/metadata/annotations", {WORD: "theirs"})
    assert "only the scheduler's controllers write" in tried(cluster, TENANT, word)
    above = with_(made, "metadata/labels", {"unisono.dev/slot": "0"})
    assert "only the scheduler's controllers write" in tried(cluster, TENANT, above)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "theirs", "uid": "1"}
    owned = with_(made, "metadata/ownerReferences", [{**owner, "controller": True}])
    assert "only a controller makes an object part of a job" in tried(cluster, TENANT, owned)
    named = with_(made, "metadata/ownerReferences", [owner])
    assert tried(cluster, TENANT, named) == ""


def test_the_right_to_create_pods_is_no_right_to_choose_nodes(cluster: ControlPlane) -> None:
    assert tried(cluster, EDITOR, pod()) == ""
    chosen = with_(pod(), "spec/nodeName", "n1")
    assert "choose a node" in tried(cluster, EDITOR, chosen)
    assert "controllers write" in tried(cluster, EDITOR, pod(annotations={WORD: "theirs"}))
    owner = {"apiVersion": "ray.io/v1alpha1", "kind": "RayCluster", "name": "theirs", "uid": "1"}
    owned = pod(ownerReferences=[{**owner, "controller": True}])
    assert "only a controller" in tried(cluster, EDITOR, owned)
    labels = {"app": "x"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": with_(pod_template(), "metadata/labels", labels)
            | {"spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "n1"}},
        },
    }
    assert "choose a node" in tried(cluster, EDITOR, deployment)


def test_a_queues_gate_stays_until_the_queue_lifts_it(cluster: ControlPlane) -> None:
    held = pod(labels={"kueue.x-k8s.io/queue-name": "team"}, name="held", namespace=HOME)
    put(cluster, held)
    lift = ("-n", HOME, "patch", "pod", "held", "--dry-run=server", "--type=json", "-p")
    patch = json.dumps([{"op": "remove", "path": "/spec/schedulingGates"}])
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(cluster.kubeconfig), *EDITOR, *lift, patch],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "a queue's gate is lifted when the queue admits the pod" in done.stderr
    kubectl(cluster, *lift, patch)
    kubectl(
        cluster, "--as=editor", *lift[:5], "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}'
    )


def account(name: str, namespace: str = "kube-system") -> tuple[str, ...]:
    """Return how to act as a service account."""
    return (f"--as=system:serviceaccount:{namespace}:{name}",)


@pytest.mark.parametrize(
    ("controller", "api_version", "kind"),
    [
        ("job-controller", "batch/v1", "Job"),
        ("replicaset-controller", "apps/v1", "ReplicaSet"),
        ("daemon-set-controller", "apps/v1", "DaemonSet"),
        ("statefulset-controller", "apps/v1", "StatefulSet"),
    ],
)
def test_stock_controllers_make_pods_of_what_was_allowed(
    cluster: ControlPlane, controller: str, api_version: str, kind: str
) -> None:
    owner = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "1", "controller": True}
    made = pod(ownerReferences=[owner], annotations={WORD: "x"})
    assert tried(cluster, account(controller), with_(made, "spec/nodeName", "n1")) == ""


def test_an_operator_of_others_hands_decisions_on_to_what_it_makes(cluster: ControlPlane) -> None:
    # What JobSet's own controller has: it makes Jobs, and no pods.
    finalizers = ("jobset.x-k8s.io", ["jobsets/finalizers"], ["update"])
    put(
        cluster,
        role("js", ("batch", ["jobs"], ["create"]), finalizers),
        bound("js", "js", "jobset-operator"),
    )
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "x", "uid": "1"}
    made = batch_job(ownerReferences=[{**owner, "controller": True}])
    made = with_(made, "spec/template/metadata/annotations", {WORD: "x"})
    operator = ("--as=jobset-operator",)
    until("it has its rights", lambda: tried(cluster, operator, made) == "")
    other = with_(made, "metadata/ownerReferences/0/kind", "Job")
    other = with_(other, "metadata/ownerReferences/0/apiVersion", "batch/v1")
    assert "controllers write" in tried(cluster, operator, other)


def test_a_kubelet_reports_its_static_pods(cluster: ControlPlane) -> None:
    group = "rbac.authorization.k8s.io"
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "nodes"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:node"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": "system:nodes"}],
    }
    put(cluster, binding)
    mirror = with_(pod(annotations={"kubernetes.io/config.mirror": "1"}), "spec/nodeName", "n1")
    node = ("--as=system:node:n1", "--as-group=system:nodes")
    until("nodes have their rights", lambda: tried(cluster, node, mirror) == "")


RULES = {
    "apiVersion": "unisono.dev/v1",
    "kind": "Policy",
    "metadata": {"name": "unisono"},
    "priorityClasses": [
        {"names": ["urgent"], "users": ["alice"], "groups": ["oncall"], "namespaces": ["prod"]},
        {"names": ["*"], "groups": ["staff"]},
    ],
}


@pytest.fixture(scope="module")
def with_rules(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """Have rules about priority classes in force: a leader has read the Policy of the cluster."""
    labelled = batch_job(labels={CLASS: "urgent"})
    assert tried(cluster, TENANT, labelled) == "", (
        "without a Policy, every class is open to all users"
    )
    put(cluster, RULES, bound("alice", "unisono:batch-user", "alice"))
    folder = tmp_path_factory.mktemp("leader")
    ours = service_account(cluster, "unisono-system", "unisono", folder / "kubeconfig")
    with replica(ours, folder / "log", "--operators", "none") as one:
        one.until_told("leading")
        until("the server has the rules", lambda: tried(cluster, TENANT, labelled) != "")
    until("alice has rights", lambda: tried(cluster, ("--as=alice",), batch_job()) == "")
    return cluster  # the rules hold while no replica runs


CLASS = "kueue.x-k8s.io/priority-class"
# Where each kind names a class beside the label of the job.
NAMES_CLASS = {
    **{kind: (made, f"{at}/spec/priorityClassName") for kind, (made, at) in MADE.items()},
    "PyTorchJob policy": (torch(), "spec/runPolicy/schedulingPolicy/priorityClass"),
    "Volcano Job itself": (vcjob(task("w", 2)), "spec/priorityClassName"),
    "PodGroup": (
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"minMember": 1},
        },
        "spec/priorityClassName",
    ),
}


@pytest.mark.parametrize("kind", NAMES_CLASS)
def test_a_class_is_for_users_groups_and_namespaces(with_rules: ControlPlane, kind: str) -> None:
    made, place = NAMES_CLASS[kind]
    assert tried(with_rules, TENANT, made) == ""
    places = ["metadata/labels"] + ([place] if kind != "TrainJob" else [])
    for path in places:

        def naming(name: str, path: str = path) -> Json:
            return with_(made, path, {CLASS: name} if path == "metadata/labels" else name)

        refused = tried(with_rules, TENANT, naming("urgent"))
        assert "urgent is for users alice; groups oncall; namespaces prod" in refused
        assert "* is for groups staff" in tried(with_rules, TENANT, naming("other"))
        assert tried(with_rules, (*TENANT, "--as-group=oncall"), naming("urgent")) == ""
        assert tried(with_rules, (*TENANT, "--as-group=staff"), naming("other")) == ""
        assert "names a priority class" in tried(
            with_rules, (*TENANT, "--as-group=staff"), naming("urgent")
        )
        assert tried(with_rules, ("--as=alice",), naming("urgent")) == ""


def test_controllers_name_the_classes_of_what_they_run(with_rules: ControlPlane) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "1", "controller": True}
    made = pod(ownerReferences=[owner], labels={CLASS: "urgent"})
    assert tried(with_rules, account("job-controller"), made) == ""
    assert tried(with_rules, (), batch_job(labels={CLASS: "urgent"})) == ""


def test_a_class_that_was_named_before_may_go_on_being_named(with_rules: ControlPlane) -> None:
    put(with_rules, batch_job(name="old", namespace=HOME, labels={CLASS: "urgent"}))
    change = ("-n", HOME, "label", "job", "old", "--dry-run=server", "--overwrite")
    kubectl(with_rules, *TENANT, *change, "a=b")
    with pytest.raises(AssertionError, match="names a priority class"):
        kubectl(with_rules, *TENANT, *change, f"{CLASS}=other")


def test_large_jobs_cost_no_more_than_a_server_allows(with_rules: ControlPlane) -> None:
    """Expressions have a budget; what exceeds it is refused, so no honest job may."""
    labels = {f"label-{number}": "x" for number in range(20)}
    some = task("w", 1)
    some["template"]["metadata"]["labels"] = labels
    many = vcjob(*({**some, "name": f"w{number}"} for number in range(MOST_TASKS)))
    assert tried(with_rules, TENANT, many) == ""
    last = with_(many, f"spec/tasks/{MOST_TASKS - 1}/template/spec/nodeName", "n1")
    assert "choose a node" in tried(with_rules, TENANT, last)


MOST_TASKS = 500


def test_numbers_beyond_all_measure_are_refused_at_apply(cluster: ControlPlane) -> None:
    most = 2**31 - 1
    many = job_set(replicated(gpus=1, pods=2, replicas=most))
    assert "replicas times the parallelism of a job is 2147483647 at most" in tried(
        cluster, TENANT, many
    )
    assert tried(cluster, TENANT, job_set(replicated(gpus=1, pods=1, replicas=most))) == ""
    workers = _ray(_ray_spec(1, replicas=most, numOfHosts=2))
    assert "replicas times numOfHosts" in tried(cluster, TENANT, workers)
    limits = "template/spec/containers/0/resources"
    head = with_(RAY, f"spec/headGroupSpec/{limits}", {"limits": {"nvidia.com/gpu": "-8"}})
    assert "nvidia.com/gpu" in tried(cluster, TENANT, head), "by the definition, or by the policy"
    node = with_(train_job(), "spec/trainer", {"numNodes": -1})
    assert "numNodes" in tried(cluster, TENANT, node)
