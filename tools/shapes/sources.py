"""Which published schemas are read, and from which versions.

Every source is a Go module; its files are looked for where the module cache would put them,
`<directory>/<module>@<version>/<path>`. Several versions of one module are united (`union`), so
that a manifest written for any of them is accepted. List the oldest first: where two versions
contradict each other, the newest is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomResources:
    """CustomResourceDefinitions of one API group."""

    group: str
    prefix: str  # of the names of definitions
    module: str
    path: str  # with {plural}
    versions: tuple[str, ...]
    plurals: tuple[str, ...]

    def files(self, directory: Path) -> Iterator[tuple[str, list[Path]]]:
        """Return the files of every kind, oldest first; a version may not have all kinds."""
        for plural in self.plurals:
            path = self.path.format(plural=plural)
            found = [
                file
                for version in self.versions
                if (file := directory / f"{self.module}@{version}" / path).exists()
            ]
            if not found:
                raise FileNotFoundError(f"{self.module}: no version has {path} below {directory}")
            yield plural, found


KUBERNETES = "k8s.io/kubernetes"
# 1.35 had Workload v1alpha1 and pods' workloadRef, 1.36 v1alpha2; v1alpha3 and v1beta1 came later.
KUBERNETES_VERSIONS = ("v1.30.14", "v1.32.13", "v1.35.8", "v1.36.4", "v1.38.0-alpha.0")

# Of this one only the words that enumerations have.
API = "k8s.io/api"
API_VERSION = "v0.38.0-alpha.0"

CUSTOM = (
    CustomResources(
        group="kueue.x-k8s.io",
        prefix="kueue",
        module="sigs.k8s.io/kueue",
        path="config/components/crd/bases/kueue.x-k8s.io_{plural}.yaml",
        versions=("v0.10.5", "v0.12.10", "v0.13.9", "v0.15.6", "v0.17.8", "v0.19.2"),
        plurals=(
            "clusterqueues",
            "localqueues",
            "cohorts",
            "workloads",
            "resourceflavors",
            "topologies",
            "admissionchecks",
            "workloadpriorityclasses",
            "provisioningrequestconfigs",
            "multikueueclusters",
            "multikueueconfigs",
        ),
    ),
    CustomResources(
        group="trainer.kubeflow.org",
        prefix="trainer",
        module="github.com/kubeflow/trainer/v2",
        path="manifests/base/crds/trainer.kubeflow.org_{plural}.yaml",
        versions=("v2.0.1", "v2.1.0", "v2.2.1", "v2.3.0"),
        plurals=("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
    ),
    CustomResources(
        group="kubeflow.org",
        prefix="kubeflow",
        module="github.com/kubeflow/training-operator",
        path="manifests/base/crds/kubeflow.org_{plural}.yaml",
        versions=("v1.9.0",),
        plurals=("pytorchjobs", "mpijobs", "tfjobs", "xgboostjobs", "paddlejobs", "jaxjobs"),
    ),
    CustomResources(
        group="kubeflow.org",
        prefix="kubeflow",
        module="github.com/kubeflow/mpi-operator",
        path="manifests/base/kubeflow.org_{plural}.yaml",
        versions=("v0.8.0",),
        plurals=("mpijobs",),
    ),
    CustomResources(
        group="jobset.x-k8s.io",
        prefix="jobset",
        module="sigs.k8s.io/jobset",
        path="config/components/crd/bases/jobset.x-k8s.io_{plural}.yaml",
        versions=("v0.5.2", "v0.8.2", "v0.12.0"),
        plurals=("jobsets",),
    ),
    CustomResources(
        group="leaderworkerset.x-k8s.io",
        prefix="lws",
        module="sigs.k8s.io/lws",
        path="config/crd/bases/leaderworkerset.x-k8s.io_{plural}.yaml",
        versions=("v0.7.0", "v0.8.0", "v0.9.0"),
        plurals=("leaderworkersets",),
    ),
    CustomResources(
        group="ray.io",
        prefix="ray",
        module="github.com/ray-project/kuberay",
        path="ray-operator/config/crd/bases/ray.io_{plural}.yaml",
        versions=("v1.1.1", "v1.4.2", "v1.6.2", "v1.7.0"),
        plurals=("rayclusters", "rayjobs", "rayservices", "raycronjobs"),
    ),
    CustomResources(
        group="batch.volcano.sh",
        prefix="volcano-batch",
        module="volcano.sh/volcano",
        path="config/crd/volcano/bases/batch.volcano.sh_{plural}.yaml",
        versions=("v1.10.0", "v1.13.3", "v1.15.1"),
        plurals=("jobs", "cronjobs"),
    ),
    CustomResources(
        group="bus.volcano.sh",
        prefix="volcano-bus",
        module="volcano.sh/volcano",
        path="config/crd/volcano/bases/bus.volcano.sh_{plural}.yaml",
        versions=("v1.10.0", "v1.13.3", "v1.15.1"),
        plurals=("commands",),
    ),
    CustomResources(
        group="flow.volcano.sh",
        prefix="volcano-flow",
        module="volcano.sh/volcano",
        path="config/crd/jobflow/bases/flow.volcano.sh_{plural}.yaml",
        versions=("v1.15.1",),
        plurals=("jobflows", "jobtemplates"),
    ),
    CustomResources(
        group="scheduling.volcano.sh",
        prefix="volcano-scheduling",
        module="volcano.sh/volcano",
        path="config/crd/volcano/bases/scheduling.volcano.sh_{plural}.yaml",
        versions=("v1.10.0", "v1.13.3", "v1.15.1"),
        plurals=("queues", "podgroups"),
    ),
    CustomResources(
        group="topology.volcano.sh",
        prefix="volcano-topology",
        module="volcano.sh/volcano",
        path="config/crd/volcano/bases/topology.volcano.sh_{plural}.yaml",
        versions=("v1.13.3", "v1.15.1"),
        plurals=("hypernodes",),
    ),
    CustomResources(
        group="scheduling.x-k8s.io",
        prefix="coscheduling",
        module="sigs.k8s.io/scheduler-plugins",
        path="config/crd/bases/scheduling.x-k8s.io_{plural}.yaml",
        versions=("v0.28.9", "v0.34.7"),
        plurals=("podgroups", "elasticquotas"),
    ),
    CustomResources(
        group="karpenter.sh",
        prefix="karpenter",
        module="sigs.k8s.io/karpenter",
        path="pkg/apis/crds/karpenter.sh_{plural}.yaml",
        versions=("v1.0.6", "v1.8.3", "v1.14.1"),
        plurals=("nodepools", "nodeclaims", "nodeoverlays"),
    ),
    CustomResources(
        group="autoscaling.x-k8s.io",
        prefix="autoscaler",
        module="k8s.io/autoscaler/cluster-autoscaler/apis",
        path="config/crd/autoscaling.x-k8s.io_{plural}.yaml",
        versions=("v0.0.0-20240830133931-adfbe7e45277",),
        plurals=("provisioningrequests",),
    ),
)
