"""Two gangs that, pod by pod, would each get half of the nodes and deadlock."""

from __future__ import annotations

from unisono.cli.demo.stage import stage
from unisono.kube.form import Json

_KUEUE = "kueue.x-k8s.io/v1beta2"
_GPU = "nvidia.com/gpu"


async def tell() -> None:
    """Tell it."""
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
