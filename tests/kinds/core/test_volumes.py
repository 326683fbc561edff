"""Where the volumes of pods are, as manifests say it (spec placement §5)."""

from __future__ import annotations

from tests.support.manifests import FakeContext, read
from unisono.engine.model.selection import Requirement
from unisono.kinds.core.volumes import reaches, within_reach

POD = """
apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: more, persistentVolumeClaim: {claimName: more}}
  - {name: same, persistentVolumeClaim: {claimName: data, readOnly: true}}
  containers: [{name: c}]
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: NAME}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  REST
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  local: {path: /data}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}]
      - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]
"""
CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: zonal}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}]
"""

ON_N1 = (Requirement("kubernetes.io/hostname", "In", ("n1",)),)
ON_N2 = (Requirement("kubernetes.io/hostname", "In", ("n2",)),)
IN_ZONES = (Requirement("topology.kubernetes.io/zone", "In", ("a", "b")),)


def claim(name: str, rest: str) -> str:
    return CLAIM.replace("NAME", name, 1).replace("REST", rest)


def found(*documents: str) -> object:
    return reaches(read(POD).spec, FakeContext(others=tuple(map(read, documents))))


def test_a_bound_claim_is_where_its_volume_is() -> None:
    assert found(claim("data", "volumeName: pv-1"), VOLUME) == ((ON_N1, ON_N2),)


def test_a_claim_that_waits_for_its_first_pod_is_where_its_class_allows() -> None:
    bound, waiting = claim("data", "volumeName: pv-1"), claim("more", "storageClassName: zonal")
    assert found(bound, waiting, VOLUME, CLASS) == ((ON_N1, ON_N2), (IN_ZONES,))


def test_a_class_that_binds_at_once_has_made_its_choice_and_will_say_so() -> None:
    at_once = CLASS.replace("WaitForFirstConsumer", "Immediate")
    assert found(claim("more", "storageClassName: zonal"), at_once) == ()


def test_what_is_not_there_says_nothing() -> None:
    assert found() == ()
    assert found(claim("data", "volumeName: pv-1")) == ()
    anywhere = VOLUME.partition("  nodeAffinity")[0]
    assert found(claim("data", "volumeName: pv-1"), anywhere) == ()


def test_one_term_of_the_pod_and_one_of_every_volume_have_to_hold() -> None:
    fast, slow = (Requirement("disk", "In", ("ssd",)),), (Requirement("disk", "In", ("hdd",)),)
    assert within_reach((), ()) == ()
    assert within_reach((fast,), ()) == (fast,)
    assert within_reach((), ((ON_N1, ON_N2), (IN_ZONES,))) == (ON_N1 + IN_ZONES, ON_N2 + IN_ZONES)
    assert within_reach((fast, slow), ((ON_N1,),)) == (fast + ON_N1, slow + ON_N1)
