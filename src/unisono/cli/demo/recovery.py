"""Seed 004 in small: a worker of a training job is killed, and the gang restarts.

The pods are real processes. Two ranks meet at the address that the job gives them, exchange a
number in every step, and write a checkpoint every fifth; then one of them dies.
"""

from __future__ import annotations

from unisono.cli.demo.stage import Stage, stage
from unisono.kube.form import Json

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


async def tell() -> None:
    """Tell it."""
    async with stage("A worker dies, and the gang restarts", "2x{gpu=8}", pods="process") as on:
        on.say(
            "A training job of two nodes, as real processes on this machine. It saves a checkpoint "
            "every five steps; in step 12, one of the two processes is killed."
        )
        await on.create(_job())
        on.note("kubectl apply -f train-job.yaml")
        await on.until("the gang starts over", lambda: _restarts(on) > 0, 60.0)
        await on.show("kubectl get jobsets", _JOB_SETS)
        on.say(
            "The other rank cannot continue alone, so both were stopped and restart together from "
            "the checkpoint, on the same nodes and within the same quota."
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


def _job() -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "t5-small", "namespace": "default"},
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
