"""The stories of `unisono demo` about whole gangs: admission, preemption, recovery, machines."""

from __future__ import annotations

from unisono.cli.demo.offline import examples_folder
from unisono.cli.demo.stage import Stage, stage
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.views.objects import Conditions
from unisono.kube.form import Json

_KUEUE = "kueue.x-k8s.io/v1beta2"
_GPU = "nvidia.com/gpu"


async def two_gangs() -> None:
    """Two gangs that, pod by pod, would each get half of the nodes and deadlock."""
    async with stage("Two gangs, four nodes", "4x{gpu=8,cpu=96,memory=768Gi}") as on:
        on.say(
            "Four nodes with 8 GPUs each. Two training jobs are submitted at the same time, each "
            "of four pods with 8 GPUs. A scheduler that places pod by pod gives each job two "
            "nodes, and both wait for the other half until their rendezvous times out."
        )
        await on.create(*queue("64"))
        await on.create(job("red"), job("blue"))
        on.note("two jobs of 4 pods x 8 GPUs are submitted")
        await on.until("one gang runs", lambda: on.running("red") + on.running("blue") == 4)
        first = "red" if on.running("red") == 4 else "blue"
        second = "blue" if first == "red" else "red"
        await on.show("kubectl get pods", "/api/v1/namespaces/default/pods")
        on.say(f"All pods of {first} run, none of {second} does, and its status says why.")
        await on.until(f"{second} runs", lambda: on.running(second) == 4)
        await on.until(f"{second} is done", lambda: on.job_is(second, "Complete"))
        await on.show("kubectl get jobs", "/apis/batch/v1/namespaces/default/jobs")
        on.say("Both gangs ran whole, one after the other.")


def queue(gpus: str) -> list[Json]:
    """Return a queue of so many GPUs, with what belongs to it."""
    quota = [{"name": _GPU, "nominalQuota": gpus}]
    return [
        {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "gpu"}, "spec": {}},
        {
            "apiVersion": _KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": "research"},
            "spec": {
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": [_GPU],
                        "flavors": [{"name": "gpu", "resources": quota}],
                    }
                ],
            },
        },
        {
            "apiVersion": _KUEUE,
            "kind": "LocalQueue",
            "metadata": {"name": "research", "namespace": "default"},
            "spec": {"clusterQueue": "research"},
        },
    ]


def job(name: str, *, pods: int = 4, gpus: int = 8, seconds: int = 4) -> Json:
    """Return a job in that queue."""
    container = {
        "name": "train",
        "image": "pytorch/pytorch",
        "command": ["sleep", str(seconds)],
        "resources": {"limits": {_GPU: str(gpus)}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/queue-name": "research"},
        },
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


# ---- preemption ----------------------------------------------------------------------------------
#
# Seed 003: two teams share CPUs, and production preempts development.

_CLUSTERS = "/apis/ray.io/v1/rayclusters"


async def preemption() -> None:
    """Production preempts development."""
    folder = examples_folder() / "seed-003-preemption"
    nodes = "1x{cpu=8,memory=64Gi},1x{cpu=8,memory=64Gi,gpu=4}"
    async with stage("Production preempts development", nodes, speed=5.0) as on:
        on.say(
            "Team A and team B share ten CPUs. Team B starts a Ray cluster for development: 6 "
            "CPUs, all of them borrowed."
        )
        await on.apply(folder / "00-kueue.yaml")
        await on.apply(folder / "10-team-b-ray-cluster-dev.yaml")
        await on.until("development is ready", lambda: _ray_state(on, "dev") == "ready")
        await on.show("kubectl get rayclusters -A", _CLUSTERS)
        on.say(
            "Team A submits production: 10 CPUs and 4 GPUs, with a higher priority. Development is "
            "suspended, and production starts when the last pod of it is gone."
        )
        await on.apply(folder / "20-team-a-ray-cluster-prod.yaml")
        await on.until("production is ready", lambda: _ray_state(on, "prod") == "ready", 60.0)
        await on.until("development is suspended", lambda: _ray_state(on, "dev") == "suspended")
        await on.show("kubectl get rayclusters -A", _CLUSTERS)
        on.say("No user had to stop anything by hand, and development comes back by itself.")


def _ray_state(on: Stage, which: str) -> str:
    for one in on.every("ray.io/rayclusters"):
        if which in one["metadata"]["name"]:
            return str((one.get("status") or {}).get("state", ""))
    return ""


# ---- recovery ------------------------------------------------------------------------------------
#
# Seed 004 in small: a worker of a training job is killed, and the gang restarts.
#
# The pods are real processes. Two ranks meet at the address that the job gives them, exchange a
# number in every step, and write a checkpoint every fifth; then one of them dies.

_JOB_SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
_TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"

_SCRIPT = """
import os, signal, socket, sys, time

rank = int(os.environ["PET_NODE_RANK"])
attempt = int(os.environ["UNISONO_RESTART_COUNT"])
address = (os.environ["PET_MASTER_ADDR"], int(os.environ["PET_MASTER_PORT"]))
checkpoint = os.environ["UNISONO_CHECKPOINT_DIR"] + "/step"

step = int(open(checkpoint).read()) if os.path.exists(checkpoint) else 0
if rank == 0:
    peer, _ = socket.create_server(address).accept()
else:
    for _ in range(300):
        try:
            peer = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.1)
print(f"attempt {attempt}: rank {rank} begins at step {step}", flush=True)
while step < 20:
    peer.sendall(bytes([step]))
    if peer.recv(1) != bytes([step]):
        sys.exit("the other rank is gone")
    step += 1
    if rank == 0 and step % 5 == 0:
        with open(checkpoint + ".new", "w") as file:
            file.write(str(step))
        os.replace(checkpoint + ".new", checkpoint)
    if rank == 1 and step == 12 and attempt == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
print(f"attempt {attempt}: rank {rank} ends at step {step}", flush=True)
"""


async def recovery() -> None:
    """A worker is killed, and the gang restarts from its checkpoint."""
    async with stage("A worker dies, and the gang restarts", "2x{gpu=8}", pods="process") as on:
        on.say(
            "A training job of two nodes, as real processes on this machine. It saves a checkpoint "
            "every five steps; in step 12, one of the two processes is killed."
        )
        await on.create(_train_job())
        on.note("kubectl apply -f train-job.yaml")
        await on.until("the gang starts over", lambda: _restarts(on) > 0, 60.0)
        await on.show("kubectl get jobsets", _JOB_SETS)
        on.say(
            "The other rank cannot continue alone, so both were stopped. They restart together "
            "from the checkpoint, on the same nodes and within the same quota: after ten seconds, "
            "and after twice as long each time that the job fails so soon again. Here it is three "
            "seconds, as the job's annotation unisono.dev/restart-delay-seconds says."
        )
        await on.until("the training ends", lambda: _is_complete(on), 90.0)
        await on.show("kubectl get trainjobs", _TRAIN_JOBS)
        for line in await _last_words(on):
            on.note(line)
        on.say("Ten steps were kept; two were repeated.")


def _restarts(on: Stage) -> int:
    found = on.every("jobset.x-k8s.io/jobsets")
    return sum((one.get("status") or {}).get("restarts") or 0 for one in found)


def _is_complete(on: Stage) -> bool:
    for one in on.every("trainer.kubeflow.org/trainjobs"):
        conditions = (one.get("status") or {}).get("conditions") or ()
        return any(c["type"] == "Complete" and c["status"] == "True" for c in conditions)
    return False


async def _last_words(on: Stage) -> list[str]:
    """Return what the pods of the last attempt wrote."""
    lines: list[str] = []
    for pod in on.every("/pods"):
        lines += (await on.logs(pod["metadata"]["name"])).splitlines()
    return sorted(lines)


def _train_job() -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": "t5-small",
            "namespace": "default",
            "annotations": {"unisono.dev/restart-delay-seconds": "3"},
        },
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "numNodes": 2,
                "image": "python:3",
                "command": ["python3", "-c", _SCRIPT],
                "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}},
            },
        },
    }


# ---- autoscale -----------------------------------------------------------------------------------
#
# The cluster has no nodes at first.

_SPEED = 30.0  # a minute and a half of waiting for machines takes three seconds
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


async def autoscale() -> None:
    """Nodes are provisioned for the whole gang, or not at all."""
    async with stage("Machines for the whole gang, or none", "", speed=_SPEED) as on:
        on.say(
            "The cluster has no nodes. A NodePool allows g6e.48xlarge; a job of two pods with 8 "
            "GPUs each comes. Provisioned one by one, the first machine would run the first pod, "
            "which waits for the second until its rendezvous times out."
        )
        await on.create(*queue("64"), pool())
        await on.create(job("train", pods=2, seconds=60))
        on.note("a job of 2 pods x 8 GPUs is submitted")
        await on.until("machines are bought", lambda: len(_claims(on)) == 2)
        await on.show("kubectl get nodeclaims", _CLAIMS)
        on.say(
            "No pod starts before both machines are ready with their GPUs; then both pods start."
        )
        await on.until("the gang runs", lambda: on.running("train") == 2)
        await on.show("kubectl get nodeclaims", _CLAIMS)
        await on.until("it is done", lambda: on.job_is("train", "Complete"))
        await on.until("the machines are gone", lambda: not on.every("/nodes"))
        on.note("no workload needs the machines any more: both are deleted")
        on.say(
            "Now the cloud has one such machine left in every zone, and the job is submitted again."
        )
        await on.create(cloud({"g6e.48xlarge": 1}))
        await on.create(job("again", pods=2, seconds=60))
        await on.until("it waits", lambda: _waits(on, "again"))
        on.say(
            "One machine alone is useless: none is launched, none is paid for, and the message "
            "says what is out of stock, what alternatives cost, and when the next attempt is."
        )


def _claims(on: Stage) -> list[Json]:
    """Return the machines that are wanted or there."""
    return on.every("karpenter.sh/nodeclaims")


def _waits(on: Stage, name: str) -> bool:
    for workload in on.every("kueue.x-k8s.io/workloads"):
        if workload["metadata"]["name"].startswith(f"job-{name}-"):
            conditions = Conditions((workload.get("status") or {}).get("conditions"))
            if conditions.is_false("QuotaReserved"):
                return "out of stock" in waiting_message(conditions) and not _claims(on)
    return False


def pool() -> Json:
    """Return a NodePool of one type of machine."""
    keys = {
        "node.kubernetes.io/instance-type": ["g6e.48xlarge"],
        "karpenter.sh/capacity-type": ["on-demand"],
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {
            "template": {
                "spec": {
                    "requirements": [
                        {"key": key, "operator": "In", "values": values}
                        for key, values in keys.items()
                    ],
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": "gpu",
                    },
                }
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "1s",
                "budgets": [{"nodes": "100%"}],
            },
        },
    }


def cloud(stock: dict[str, int]) -> Json:
    """Return a simulated cloud that has only so many machines of a type in a zone."""
    lines = "".join(f"  {name}: {count}\n" for name, count in stock.items())
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "unisono-cloud", "namespace": "kube-system"},
        "data": {"cloud.yaml": f"stock:\n{lines}"},
    }
