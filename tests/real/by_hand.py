"""`make real-cluster`: a real control plane with simulated nodes, to try things on by hand.

    python -m tests.real.by_hand [--nodes SHAPE] [--speed N] [--directory DIR]

There are etcd, the API server, the stock job controller and kube-scheduler, all on loopback, and
nodes whose pods are told to run. Nothing of ours is there; everything goes when it is interrupted.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.real.binaries import NoControlPlane
from tests.real.cluster import kubelets
from tests.real.control_plane import CONTROLLERS, running

# The machines of the documents in examples/, by the labels that flavors and selectors ask for.
NODES = ",".join(
    (
        "4xg6e.48xlarge@ap-northeast-2a",
        "8x{gpu=8,name=plain,nodeType=nvidia}",
        "4x{gpu=8,name=efa,nodeType=nvidia-efa}",
        "2x{gpu=8,name=a100,nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB}",
    )
)
_MORE = ("job-controller", "pod-garbage-collector-controller")
_NEXT = """\
export KUBECONFIG={kubeconfig}
kubectl apply -k deploy         # our kinds, roles and policies; nodes here cannot run our replicas:
unisono controller --log text   # run one in a terminal of its own
kubectl create namespace ml-training
kubectl apply -f examples/seed-001-kueue-volcano
kubectl get pods -A -o wide --watch
"""


def main(arguments: list[str]) -> int:
    """Start it, say how to use it, and wait for Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.by_hand", allow_abbrev=False)
    parser.add_argument("--nodes", default=NODES, help="default: those of the examples")
    parser.add_argument("--speed", type=float, default=1.0, help="how fast pods live")
    parser.add_argument("--directory", type=Path, help="where to keep its files; must be empty")
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        directory = options.directory
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(parents=True, exist_ok=True)
        try:
            plane = stack.enter_context(
                running(directory, controllers=(*CONTROLLERS, *_MORE), has_scheduler=True)
            )
        except NoControlPlane as problem:
            print(f"real-cluster: {problem}", file=sys.stderr)
            return 1
        stack.enter_context(kubelets(plane, options.nodes, options.speed))
        print(_NEXT.format(kubeconfig=plane.kubeconfig), flush=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)  # only to end the pause
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
