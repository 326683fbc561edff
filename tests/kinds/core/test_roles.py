"""Which pods of a group one pod set can stand for."""

from __future__ import annotations

from tests.support.manifests import read
from unisono.kinds.core.roles import alike, set_of_pods
from unisono.kinds.core.schema import Pod


def pod(name: str, labels: str = "", spec: str = "", cpu: int = 1) -> Pod:
    made: Pod = read(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"
        f"spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]{spec}}}\n"
    )
    return made


def names(groups: list[list[Pod]]) -> list[list[str]]:
    return [[pod.metadata.name for pod in group] for group in groups]


AWAY = (
    ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
    " [{topologyKey: rack, labelSelector: {matchLabels: {role: boss}}}]}}"
)


def test_pods_that_ask_for_the_same_are_alike() -> None:
    pods = [pod("a"), pod("b", cpu=2), pod("c"), pod("d", spec=", nodeSelector: {zone: a}")]
    assert names(alike(pods)) == [["a", "c"], ["b"], ["d"]]


def test_a_host_port_makes_a_difference_and_a_container_port_none() -> None:
    def listening(name: str, port: str) -> Pod:
        made: Pod = read(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
            f"spec: {{containers: [{{name: c, ports: [{{{port}}}]}}]}}\n"
        )
        return made

    pods = [
        listening("a", "containerPort: 1"),
        listening("b", "containerPort: 2"),
        listening("c", "containerPort: 1, hostPort: 1"),
    ]
    assert names(alike(pods)) == [["a", "b"], ["c"]]


def test_labels_count_only_where_a_rule_looks_at_them() -> None:
    plain = [pod("a", "role: boss, index: '0'"), pod("b", "role: worker, index: '1'")]
    assert names(alike(plain)) == [["a", "b"]]
    assert names(alike(plain, keys=["index"])) == [["a"], ["b"]]
    ruled = [pod("a", "role: boss", AWAY), pod("b", "role: worker", AWAY)]
    assert names(alike(ruled)) == [["a"], ["b"]]


def test_pods_can_be_kept_apart() -> None:
    pods = [pod("a"), pod("b"), pod("c")]
    assert names(alike(pods, apart=lambda one: one.metadata.name == "b")) == [["a", "c"], ["b"]]


def test_a_set_has_the_labels_that_all_of_its_pods_have() -> None:
    pods = [pod("a", "app: x, index: '0'"), pod("b", "app: x, index: '1', more: z")]
    made = set_of_pods(pods, "main", 2)
    assert made.template.metadata.labels == {"app": "x"}
    assert (made.name, made.count, made.path) == ("main", 2, "")
    assert set_of_pods(pods[:1], "main", 1).template.metadata.labels == {"app": "x", "index": "0"}
