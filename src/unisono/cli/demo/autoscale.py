"""A cluster without nodes: they are provisioned for the whole gang, or not at all."""

from __future__ import annotations

from unisono.cli.demo.gang import job, queue
from unisono.cli.demo.stage import Stage, stage
from unisono.kube.form import Json

_SPEED = 30.0  # a minute and a half of waiting for machines takes three seconds
_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"


async def tell() -> None:
    """Tell it."""
    async with stage("Machines for the whole gang, or none", "", speed=_SPEED) as on:
        on.say(
            "The cluster has no nodes. A NodePool allows g6e.48xlarge; a job of two pods with 8 "
            "GPUs each comes. Provisioned one by one, the first machine would run the first pod, "
            "which waits for the second until its rendezvous times out."
        )
        await on.create(*queue("64"), pool())
        await on.create(job("train", pods=2, seconds=60))
        on.note("a job of 2 pods x 8 GPUs is submitted")
        await on.until("machines are bought", lambda: len(claims(on)) == 2)
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


def claims(on: Stage) -> list[Json]:
    """Return the machines that are wanted or there."""
    return on.every("karpenter.sh/nodeclaims")


def _waits(on: Stage, name: str) -> bool:
    for workload in on.every("kueue.x-k8s.io/workloads"):
        if workload["metadata"]["name"].startswith(f"job-{name}-"):
            for one in (workload.get("status") or {}).get("conditions") or ():
                if one["type"] == "QuotaReserved" and one["status"] == "False":
                    return "out of stock" in one["message"] and not claims(on)
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
