"""What a pod and a pod template say when their author says nothing.

`fill_pod_spec` is for pods and templates alike. A pod gets more than a template: requests where
only limits are given, and service links; controllers copy templates into pods, so a template need
not repeat what the pod will get anyway.
"""

from __future__ import annotations

from typing import Any

from unisono.apiserver.objects import Json, at, child, fill, fill_text, items

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
# How long a pod stays on a node that is gone, unless it says otherwise.
TOLERATED_SECONDS = 300

_FILE_MODE = 0o644
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def fill_template(template: Json) -> None:
    """Fill in a pod template."""
    child(template, "metadata")
    fill_pod_spec(child(template, "spec"))


def fill_pod(pod: Json) -> None:
    """Fill in a pod."""
    spec = child(pod, "spec")
    fill_pod_spec(spec)
    fill(spec, enableServiceLinks=True)
    for name in ("initContainers", "containers"):
        for container in items(spec, name):
            _request_limits(at(container, "resources"))
    _request_pod_limits(spec)
    if spec.get("hostNetwork") is True:
        _open_host_ports(spec)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    # Two names of one field; the older one is still read by some clients.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def fill_pod_spec(spec: Json) -> None:
    """Fill in what pods and templates have in common."""
    fill_text(
        spec, restartPolicy="Always", dnsPolicy="ClusterFirst", schedulerName="default-scheduler"
    )
    fill(spec, terminationGracePeriodSeconds=30, securityContext={})
    for name in _CONTAINERS:
        for container in items(spec, name):
            _fill_container(container)
    for volume in items(spec, "volumes"):
        fill_volume(volume)


def add_default_tolerations(spec: Json) -> None:
    """Let a pod stay for a while on a node that stopped to answer, unless it says how long."""
    tolerations = spec.get("tolerations")
    if tolerations is not None and not isinstance(tolerations, list):
        return
    present = items(spec, "tolerations")
    for key in (NOT_READY, UNREACHABLE):
        if not any(_tolerates(one, key) for one in present):
            spec.setdefault("tolerations", [])
            spec["tolerations"] = [
                *(spec["tolerations"] or ()),
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": TOLERATED_SECONDS,
                },
            ]


def _tolerates(toleration: Json, key: str) -> bool:
    if toleration.get("effect") not in (None, "", "NoExecute"):
        return False
    return toleration.get("key") in (key, None, "")


# ---- containers --------------------------------------------------------------------------------


def _fill_container(container: Json) -> None:
    fill(container, resources={})
    fill_text(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        imagePullPolicy=_pull_policy(container.get("image")),
    )
    for port in items(container, "ports"):
        fill_text(port, protocol="TCP")
    for variable in items(container, "env"):
        _fill_source(at(variable, "valueFrom"))
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(name), dict):
            _fill_probe(container[name])
    for name in ("postStart", "preStop"):
        _fill_http(at(container, "lifecycle", name))


def _pull_policy(image: object) -> str:
    """Pull what can change under its name each time, and everything else once."""
    if not isinstance(image, str):
        return "Always"
    name, at_sign, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if at_sign and not tag:
        return "IfNotPresent"
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _fill_source(source: Json) -> None:
    if isinstance(source.get("fieldRef"), dict):
        fill_text(source["fieldRef"], apiVersion="v1")
    if isinstance(source.get("resourceFieldRef"), dict):
        fill(source["resourceFieldRef"], divisor="0")


def _fill_probe(probe: Json) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(name):
            probe[name] = value
    _fill_http(probe)
    if isinstance(probe.get("grpc"), dict):
        fill(probe["grpc"], service="")


def _fill_http(handler: Json) -> None:
    if isinstance(handler.get("httpGet"), dict):
        fill_text(handler["httpGet"], path="/", scheme="HTTP")


def _request_limits(resources: Json) -> None:
    """Default the request of a resource to its limit."""
    limits = at(resources, "limits")
    if limits:
        requests = child(resources, "requests")
        for name, amount in limits.items():
            if requests.get(name) is None:
                requests[name] = amount


def _open_host_ports(spec: Json) -> None:
    """On the host's network a port of a container is one of the host."""
    for name in ("initContainers", "containers"):
        for container in items(spec, name):
            for port in items(container, "ports"):
                if not port.get("hostPort") and "containerPort" in port:
                    port["hostPort"] = port["containerPort"]


def _request_pod_limits(spec: Json) -> None:
    """A limit of the whole pod is its request too, where no container asks for anything."""
    limits = at(spec, "resources", "limits")
    asked = {
        name
        for part in ("initContainers", "containers")
        for container in items(spec, part)
        for name in at(container, "resources", "requests")
    }
    for name, amount in limits.items():
        if name not in asked:
            child(spec["resources"], "requests").setdefault(name, amount)


# ---- volumes -----------------------------------------------------------------------------------


def fill_volume(volume: Json) -> None:
    """Fill in a volume; one that says nothing of its source is an empty directory."""
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(name), dict):
            fill(volume[name], defaultMode=_FILE_MODE)
    _fill_downward(at(volume, "downwardAPI"))
    for source in items(at(volume, "projected"), "sources"):
        _fill_downward(at(source, "downwardAPI"))
        if isinstance(source.get("serviceAccountToken"), dict):
            fill(source["serviceAccountToken"], expirationSeconds=3600)
    if isinstance(volume.get("hostPath"), dict):
        fill(volume["hostPath"], type="")
    claim = at(volume, "ephemeral", "volumeClaimTemplate")
    if claim:
        child(claim, "metadata")
    if isinstance(claim.get("spec"), dict):
        fill_text(claim["spec"], volumeMode="Filesystem")


def _fill_downward(source: dict[str, Any]) -> None:
    for file in items(source, "items"):
        _fill_source(file)
