"""What a submitter is told at once, instead of waiting in silence."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.admission.manifests import KUEUE, QUEUE, cluster, job, kueue, named
from tests.apiserver.surroundings import Around, served_as
from unisono.apiserver.admission import advise
from unisono.apiserver.objects import Json
from unisono.kinds.shapes.foreign import foreign_kinds


def told(obj: Json, context: Around, key: str = "batch/jobs") -> list[str]:
    return list(advise(served_as(key), obj, context))


def test_a_job_that_fits_needs_no_advice() -> None:
    assert told(job(pods=8), cluster()) == []


def test_a_job_without_a_queue_gets_none() -> None:
    assert told(job(queue=""), Around()) == []


def test_a_queue_that_does_not_exist() -> None:
    context = cluster()
    context.add(f"{KUEUE}/localqueues", named("research", "team", spec={}))
    assert told(job(queue="reserach"), context) == [
        f'metadata.labels[{QUEUE}]: there is no LocalQueue "reserach" in namespace team yet; '
        'it waits until there is one; did you mean "research"?'
    ]


def test_a_door_that_leads_nowhere() -> None:
    context = cluster()
    del context.stored[f"{KUEUE}/clusterqueues", "", "cq"]
    assert told(job(), context) == [
        "LocalQueue lq leads to ClusterQueue cq, which does not exist; it waits"
    ]


def test_more_than_the_queue_may_ever_use() -> None:
    [text] = told(job(pods=9), cluster())
    assert text.startswith("can never be admitted as the queues are now:")
    assert "9" in text
    assert "8" in text


def test_what_can_be_borrowed_counts() -> None:
    context = cluster(cohortName="all")
    quota = {"name": "nvidia.com/gpu", "nominalQuota": 8}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "h100", "resources": [quota]}],
    }
    rich = named("rich", spec={"cohortName": "all", "resourceGroups": [group]})
    context.add(f"{KUEUE}/clusterqueues", kueue("ClusterQueue", rich))
    assert told(job(pods=16), context) == []
    assert len(told(job(pods=17), context)) == 1


def test_a_resource_that_the_queue_does_not_cover() -> None:
    obj = job()
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = "1"
    [text] = told(obj, cluster())
    assert "cpu" in text


def test_one_quota_for_several_flavors() -> None:
    context = cluster()
    queue = context.stored[f"{KUEUE}/clusterqueues", "", "cq"]
    queue["spec"]["resourceGroups"] = [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": ["h100", "a100"],
            "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}],
        }
    ]
    a100 = named("a100", spec={"nodeLabels": {"gpu": "a100"}})
    context.add(f"{KUEUE}/resourceflavors", kueue("ResourceFlavor", a100))
    assert told(job(pods=4), context) == []
    assert len(told(job(pods=5), context)) == 1


def test_a_namespace_that_the_queue_does_not_take() -> None:
    context = cluster(namespaceSelector={"matchLabels": {"gpu": "yes"}})
    assert told(job(), context) == ["ClusterQueue cq takes no jobs from namespace team; it waits"]


def test_a_queue_that_is_stopped() -> None:
    assert told(job(), cluster(stopPolicy="Hold")) == [
        "ClusterQueue cq is stopped (Hold); it waits"
    ]


def test_no_node_of_the_flavor() -> None:
    context = cluster()
    context.stored["/nodes", "", "n1"]["metadata"]["labels"] = {"gpu": "a100"}
    [text] = told(job(), context)
    assert text == "no node has the labels of flavor h100; it waits for nodes"
    del context.stored["/nodes", "", "n1"]
    assert told(job(), context) == [], "a cluster without any nodes is only being set up"


def test_a_priority_class_that_does_not_exist() -> None:
    obj = job()
    obj["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "high"
    [text] = told(obj, cluster())
    assert text.endswith("; priority 0")


def test_a_namespace_that_is_not_managed() -> None:
    obj = job()
    obj["metadata"]["namespace"] = "kube-system"
    [text] = told(obj, cluster())
    assert "is not managed" in text


def test_a_train_job_of_an_unknown_runtime() -> None:
    obj = named(
        "t",
        "team",
        apiVersion="trainer.kubeflow.org/v1alpha1",
        kind="TrainJob",
        spec={"runtimeRef": {"name": "no-such-runtime"}},
    )
    obj["metadata"]["labels"] = {QUEUE: "lq"}
    [text] = told(obj, cluster(), "trainer.kubeflow.org/trainjobs")
    assert "no-such-runtime" in text


# ---- queues and flavors ------------------------------------------------------------------------


def test_references_to_what_does_not_exist() -> None:
    door = named("d", "team", spec={"clusterQueue": "qc"})
    [text] = told(door, cluster(), f"{KUEUE}/localqueues")
    assert 'there is no ClusterQueue "qc" yet' in text
    queue = named("q", spec={"resourceGroups": [{"flavors": ["h100", "x"]}]})
    [text] = told(queue, cluster(), f"{KUEUE}/clusterqueues")
    assert text.startswith("spec.resourceGroups[0].flavors[1]")


def test_a_flavor_without_nodes() -> None:
    flavor = named("f", spec={"nodeLabels": {"gpu": "b200"}})
    assert told(flavor, cluster(), f"{KUEUE}/resourceflavors") == [
        "spec.nodeLabels: no node has these labels yet"
    ]


# ---- what is only stored -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "image", "expected"),
    [
        ("kueue-controller-manager", "x", "Kueue is built in, not started"),
        ("manager", "registry.k8s.io/jobset/jobset-controller-manager:v1", "JobSet is built in"),
        ("my-volcano-scheduler", "x", "Volcano is built in"),
    ],
)
def test_deployments(name: str, image: str, expected: str) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    obj = named(name, "team", spec={"template": template})
    [text] = told(obj, Around(), "apps/deployments")
    assert expected in text


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("argoproj.io/workflows", "nothing acts on it here: Argo Workflows makes its pods"),
        ("kai.scheduler/topologies", "nothing acts on it here"),
        ("resource.k8s.io/resourceclaimtemplates", "no driver offers devices here"),
        ("admissionregistration.k8s.io/validatingadmissionpolicybindings", "not evaluated here"),
    ],
)
def test_kinds_that_nothing_acts_on(key: str, expected: str) -> None:
    foreign = foreign_kinds().get(key)
    served = foreign[0] if foreign is not None else served_as(key)
    (text,) = advise(served, named("x", "team"), Around())
    assert expected in text


def test_kinds_that_are_what_they_seem() -> None:
    assert told(named("web", "team", spec={}), Around(), "apps/deployments") == []
    assert told(named("c", "team"), Around(), "/configmaps") == []
    assert told(named("s", "team"), Around(), "/services") == []


def test_a_daemon_set_is_in_no_queue() -> None:
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    obj = {"metadata": {"name": "d", "namespace": "team", "labels": labels}}
    [text] = told(obj, Around(), "apps/daemonsets")
    assert "a DaemonSet is not queued" in text


def test_a_volcano_queue_that_does_not_exist_or_is_closed() -> None:
    context = cluster()
    context.add("scheduling.volcano.sh/queues", named("shut", status={"state": "Closed"}))
    vcjob = {"metadata": {"name": "j", "namespace": "team"}, "spec": {"queue": "shutt"}}
    assert told(vcjob, context, "batch.volcano.sh/jobs") == [
        'spec.queue: there is no Queue "shutt" yet; it waits until there is one; '
        'did you mean "shut"?'
    ]
    vcjob["spec"] = {"queue": "shut"}
    assert told(vcjob, context, "batch.volcano.sh/jobs") == [
        "spec.queue: Queue shut is closed; it waits"
    ]


@pytest.mark.parametrize(
    ("kind", "stored", "where"),
    [
        ("ClusterTrainingRuntime", "clustertrainingruntimes", ""),
        ("TrainingRuntime", "trainingruntimes", " in namespace team"),
    ],
)
def test_a_runtime_that_does_not_exist(kind: str, stored: str, where: str) -> None:
    context = Around()
    ref = {"name": "torch-distribted", "kind": kind}
    obj = named("a", "team", spec={"runtimeRef": ref})
    runtime = named("torch-distributed", "team" if where else "", spec={})
    context.add(f"trainer.kubeflow.org/{stored}", runtime)
    assert told(obj, context, "trainer.kubeflow.org/trainjobs") == [
        f'spec.runtimeRef: there is no {kind} "torch-distribted"{where} yet; it waits until there '
        'is one; did you mean "torch-distributed"?'
    ]
    ref["name"] = "torch-distributed"
    assert told(obj, context, "trainer.kubeflow.org/trainjobs") == []


# ---- without a queue ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["batch/jobs", "jobset.x-k8s.io/jobsets", "unisono.dev/slurmjobs"])
def test_warns_that_a_job_without_a_queue_has_no_quota(key: str) -> None:
    words = (
        f"metadata.labels[{QUEUE}]: names no queue (here: lq), so it runs outside of every quota"
    )
    assert told(named("a", "team", spec={}), cluster(), key) == [words]
    context = cluster()
    del context.stored[f"{KUEUE}/localqueues", "team", "lq"]
    assert told(named("a", "team", spec={}), context, key) == [words.replace(" (here: lq)", "")]
    del context.stored[f"{KUEUE}/clusterqueues", "", "cq"]
    assert told(named("a", "team", spec={}), context, key) == []


def test_pods_that_stand_for_themselves_hear_it_too() -> None:
    greedy = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    alone = named("p", "team", spec={"containers": [greedy]})
    assert "outside of every quota" in told(alone, cluster(), "/pods")[0]
    modest = named("p", "team", spec={"containers": [{"name": "a"}]})
    assert told(modest, cluster(), "/pods") == []
    of_a_set = named("p", "team", spec={"containers": [greedy]})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": True}
    of_a_set["metadata"]["ownerReferences"] = [owner]
    assert told(of_a_set, cluster(), "/pods") == []


def test_warns_that_a_queue_has_to_be_named() -> None:
    context = cluster()
    policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "p"}}
    context.add("unisono.dev/policies", {**policy, "manageJobsWithoutQueueName": True})
    assert told(job(queue=""), context) == [
        f"metadata.labels[{QUEUE}]: names no queue; it waits until it does"
    ]


# ---- notifications -------------------------------------------------------------------------------


def asking(**said: str) -> Json:
    made = job()
    made["metadata"]["annotations"] = {
        f"unisono.dev/{key.replace('_', '-')}": text for key, text in said.items()
    }
    return made


def mailing(**mail: Any) -> Around:
    server = {"server": "mail.example.org", "from": "unisono@example.org", **mail}
    context = cluster()
    policy = named("unisono", notifications={"mail": server})
    context.add(
        "unisono.dev/policies", {"apiVersion": "unisono.dev/v1", "kind": "Policy", **policy}
    )
    return context


def test_mails_that_are_not_sent_are_named_at_once() -> None:
    context = mailing(recipients=["example.org"])
    assert told(asking(notify="end", notify_to="ada@example.org"), context) == []
    assert told(asking(notify="end", notify_to="eve@evil.org"), context) == [
        "metadata.annotations[unisono.dev/notify-to]: gets no mail: eve@evil.org is not among the "
        "addresses that jobs may name (notifications.mail.recipients)"
    ]
    assert told(asking(notify="end"), context) == [
        "metadata.annotations[unisono.dev/notify]: gets no mail: it names no address "
        "(unisono.dev/notify-to), and no user"
    ]
    assert told(asking(notify="end", notify_to="a@b"), cluster()) == [
        "metadata.annotations[unisono.dev/notify-to]: gets no mail: the policy names no mail "
        "server (notifications.mail)"
    ]


def test_words_that_are_no_events_are_named() -> None:
    [text] = told(
        asking(notify="ende,fail", notify_to="ada@example.org"), mailing(domain="example.org")
    )
    assert text == (
        'metadata.annotations[unisono.dev/notify]: ende is no event; did you mean "end"?'
    )


@pytest.mark.parametrize("labels", [{"kueue.x-k8s.io/queue-name": "lq"}, {}])
def test_devices_by_resource_claims(labels: dict[str, str]) -> None:
    obj = job()
    obj["metadata"]["labels"] = labels
    pod = obj["spec"]["template"]["spec"]
    pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    texts = told(obj, cluster())
    [text] = [one for one in texts if "resource claim" in one]
    assert text.startswith("spec.template.spec.resourceClaims: asks for devices by resource claim")
    assert text.endswith("it waits")
    assert not any("never" in one for one in texts)


# ---- nodes -------------------------------------------------------------------------------------


def with_nodes(gpus: int = 8, *, count: int = 1, quota: int = 1000, **spec: Any) -> Around:
    """Return a cluster with enough quota, and nodes of one size."""
    context = cluster(quota)
    for number in range(1, count + 1):
        made = named(f"n{number}", apiVersion="v1", kind="Node", spec=spec)
        made["metadata"]["labels"] = {"gpu": "h100"}
        made["status"] = {"allocatable": {"nvidia.com/gpu": str(gpus), "pods": "110"}}
        context.add("/nodes", made)
    return context


NO_ROOM = "can never start on the nodes that there are: "


def test_a_pod_larger_than_every_node() -> None:
    assert told(job(gpus=16), with_nodes()) == [
        f"{NO_ROOM}pod set main needs 16 nvidia.com/gpu for one pod, "
        "and the largest node has 8 nvidia.com/gpu"
    ]
    assert told(job(gpus=8), with_nodes()) == []


def test_a_gang_larger_than_the_cluster() -> None:
    assert told(job(gpus=8, pods=3), with_nodes(count=2)) == [
        f"{NO_ROOM}pod set main has 3 pods, and even empty nodes hold 2 of them"
    ]
    assert told(job(gpus=8, pods=3), with_nodes(count=3)) == []


def test_a_gang_with_one_pod_on_each_node() -> None:
    obj = job(pods=3)
    template = obj["spec"]["template"]
    template["metadata"] = {"labels": {"a": "b"}}
    rule = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    anti = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    template["spec"]["affinity"] = {"podAntiAffinity": anti}
    assert told(obj, with_nodes(count=2)) == [
        f"{NO_ROOM}pod set main has 3 pods, and even empty nodes hold 2 of them"
    ]
    assert told(obj, with_nodes(count=3)) == []


def test_a_label_that_no_node_has() -> None:
    obj = job()
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "b200"}
    assert told(obj, with_nodes()) == [
        f"{NO_ROOM}pod set main: no node has the labels that it asks for (gpu=b200)"
    ]


def test_a_taint_that_pods_do_not_tolerate() -> None:
    taints = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    assert told(job(), with_nodes(taints=taints)) == [
        f"{NO_ROOM}pod set main does not tolerate dedicated=ml:NoSchedule, which all its nodes have"
    ]
    obj = job()
    obj["spec"]["template"]["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    assert told(obj, with_nodes(taints=taints)) == []


def test_a_taint_of_the_flavor() -> None:
    context = with_nodes()
    flavor = context.stored[f"{KUEUE}/resourceflavors", "", "h100"]
    flavor["spec"]["nodeTaints"] = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]
    assert told(job(), context) == [
        f"{NO_ROOM}pod set main does not tolerate dedicated=ml:NoSchedule of flavor h100"
    ]


def test_a_device_that_no_node_has() -> None:
    obj = job(queue="")
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"example.com/fpga": "1"}}
    texts = told(obj, with_nodes())
    assert texts[-1] == (
        f"{NO_ROOM}pod set main needs 1 example.com/fpga for one pod, "
        "and no node has example.com/fpga"
    )


def test_a_node_that_is_out_comes_back() -> None:
    assert told(job(), with_nodes(unschedulable=True)) == []


def test_machines_that_may_be_bought_are_not_known_here() -> None:
    context = with_nodes()
    pool = named("gpus", apiVersion="karpenter.sh/v1", kind="NodePool", spec={})
    context.add("karpenter.sh/nodepools", pool)
    assert told(job(gpus=16), context) == []


def test_a_pod_and_a_volcano_job_without_a_queue() -> None:
    container = {"name": "a", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "16"}}}
    alone = named("p", "team", apiVersion="v1", kind="Pod", spec={"containers": [container]})
    assert told(alone, with_nodes(), "/pods")[-1].startswith(NO_ROOM)
    task = {"name": "w", "replicas": 1, "template": {"spec": {"containers": [container]}}}
    gang = named("v", "team", apiVersion="batch.volcano.sh/v1alpha1", kind="Job")
    gang["spec"] = {"tasks": [task], "minAvailable": 1, "schedulerName": "volcano"}
    assert told(gang, with_nodes(), "batch.volcano.sh/jobs")[-1].startswith(NO_ROOM)
    owned = {**alone, "metadata": alone["metadata"] | {"ownerReferences": [{"uid": "u"}]}}
    assert told(owned, with_nodes(), "/pods") == [], "its job was told"


def test_what_was_found_is_believed_for_some_seconds() -> None:
    context = with_nodes()
    assert told(job(gpus=16), context) != []
    context.stored["/nodes", "", "n1"]["status"]["allocatable"]["nvidia.com/gpu"] = "16"
    assert told(job(gpus=16), context) != []
    context.now += 10
    assert told(job(gpus=16), context) == []


def pod_of_group(name: str, gpus: int, total: int) -> Json:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": {QUEUE: "lq", "kueue.x-k8s.io/pod-group-name": "group"},
            "annotations": {"kueue.x-k8s.io/pod-group-total-count": str(total)},
        },
        "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]},
    }


def test_pods_of_a_group_come_one_after_the_other() -> None:
    context = cluster()
    first, second = (pod_of_group(name, 4, 2) for name in ("a", "b"))
    assert told(first, context, "/pods") == []
    context.add("/pods", first)
    assert told(second, context, "/pods") == []


def test_the_last_pod_of_a_group_that_can_never_start_is_warned_of() -> None:
    context = cluster()
    for name in ("a", "b"):
        one = pod_of_group(name, 4, 3)
        assert told(one, context, "/pods") == []
        context.add("/pods", one)
    [text] = told(pod_of_group("c", 4, 3), context, "/pods")
    assert text.startswith("can never be admitted as the queues are now: pod set ")
    assert "needs 12 nvidia.com/gpu" in text


def test_what_is_known_of_a_shape_ends_with_what_it_depends_on() -> None:
    context = with_nodes()
    context.shape_key = b"the same shape"
    assert told(job(), context) == []
    limits = [{"type": "Container", "max": {"nvidia.com/gpu": "0"}}]
    context.add("/limitranges", named("small", "team", apiVersion="v1", kind="LimitRange"))
    context.stored["/limitranges", "team", "small"]["spec"] = {"limits": limits}
    assert told(job(), context) != []


def test_devices_of_a_class_that_came_later() -> None:
    obj = job()
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"example.com/fpga": "1"}}
    context = cluster()
    context.shape_key = b"the same shape"
    assert not any("DeviceClass" in one for one in told(obj, context))
    made = named("fpga", apiVersion="resource.k8s.io/v1", kind="DeviceClass")
    context.add("resource.k8s.io/deviceclasses", made | {"spec": {}})
    assert not any("DeviceClass" in one for one in told(obj, context))
    context.stored["resource.k8s.io/deviceclasses", "", "fpga"]["spec"] = {
        "extendedResourceName": "example.com/fpga"
    }
    assert any("DeviceClass fpga" in one for one in told(obj, context))


def test_a_queue_that_is_inactive() -> None:
    context = cluster()
    queue = context.stored[f"{KUEUE}/clusterqueues", "", "cq"]
    message = "ClusterQueue cq is inactive: AdmissionCheck nope does not exist"
    condition = {"type": "Active", "status": "False", "reason": "X", "message": message}
    queue["status"] = {"conditions": [condition]}
    assert told(job(), context) == [f"it waits: {message}"]


def test_a_topology_level_that_no_node_has() -> None:
    context = cluster()
    asked = job(pods=2)
    template = asked["spec"]["template"]
    template["metadata"] = {"annotations": {"kueue.x-k8s.io/podset-required-topology": "rack"}}
    assert told(asked, context) == [
        "can never start on the nodes that there are: pod set main has to be in one domain of "
        "rack, and no node has that label"
    ]
