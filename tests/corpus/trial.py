"""Apply one manifest to a cluster that fits it, let time pass, and say what became of it.

    runs      its pods run or have succeeded; what has no pods is acted upon
    waits     it waits, and `why` says for what
    refused   the API refuses it, with a message
    warns     it is stored with a warning that says what is not done with it
    wrong     anything else: it failed, or nothing happens and nothing says so

The worst of its objects counts, in the order wrong, warns, refused, waits, runs.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml

from tests.corpus.worlds import world_for
from tests.hostile.cases import body_of, path_of
from tests.hostile.stage import Answer, Send, Stage
from unisono.cli.why.answer import answer as answer_why
from unisono.cli.why.read import gather
from unisono.kinds.shapes.served import Served
from unisono.kube.form import Json

OUTCOMES = ("runs", "waits", "refused", "warns", "wrong")
SPACE = "default"
_STEPS = (5.0, 60.0, 600.0)  # after each of them the cluster comes to rest
_MOST_TASKS = 200_000
# What a warning says of what is stored and not acted upon.
_NOT_DONE = re.compile(r"\bis stored, but\b")
# Or of what stays away because we do what it would do; or that waits for a device driver.
_DONE = re.compile(r"\bis built in, not started\b")
_WAITS = re.compile(r"\bpods that refer to it wait\b|\bwaits for .*, which does not run here\b")
# The group of a version that Kubernetes does not serve any more, or that was never released.
_GONE = ("scheduling.k8s.io/v1beta1", "scheduling.incubator.k8s.io", "scheduling.kai.nvidia.com")
# Groups and kinds without pods of their own that something reads: each is acted upon.
_ACTED_UPON = frozenset(
    {
        ("", "ConfigMap"),
        ("", "LimitRange"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("", "Secret"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("batch", "CronJob"),
        ("batch.volcano.sh", "CronJob"),
        ("flow.volcano.sh", "JobTemplate"),
        ("karpenter.k8s.aws", "EC2NodeClass"),
        ("karpenter.sh", "NodePool"),
        ("karpenter.sh", "NodeClaim"),
        ("kueue.x-k8s.io", "AdmissionCheck"),
        ("kueue.x-k8s.io", "ClusterQueue"),
        ("kueue.x-k8s.io", "Cohort"),
        ("kueue.x-k8s.io", "LocalQueue"),
        ("kueue.x-k8s.io", "ProvisioningRequestConfig"),
        ("kueue.x-k8s.io", "ResourceFlavor"),
        ("kueue.x-k8s.io", "Topology"),
        ("kueue.x-k8s.io", "WorkloadPriorityClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("ray.io", "RayCronJob"),
        ("resource.k8s.io", "DeviceClass"),
        ("scheduling.k8s.io", "PodGroup"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("scheduling.k8s.io", "Workload"),
        ("scheduling.run.ai", "PodGroup"),
        ("scheduling.run.ai", "Queue"),
        ("scheduling.volcano.sh", "PodGroup"),
        ("scheduling.volcano.sh", "Queue"),
        ("scheduling.x-k8s.io", "ElasticQuota"),
        ("scheduling.x-k8s.io", "PodGroup"),
        ("unisono.dev", "WorkloadKind"),
        ("storage.k8s.io", "StorageClass"),
        ("topology.volcano.sh", "HyperNode"),
        ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
        ("trainer.kubeflow.org", "TrainingRuntime"),
    }
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a manifest, or of one object of it."""

    word: str
    says: str = ""


def judged(file: Path) -> Outcome:
    """Return what becomes of a file, on a cluster of its own in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            found = asyncio.new_event_loop().run_until_complete(_judged(file))
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(found, pipe)
            code = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    found = pickle.loads(told) if told else Outcome("wrong", "the process died")
    assert isinstance(found, Outcome)
    return found


def documents_of(file: Path) -> list[Json]:
    """Return the objects of a file; those of a list one by one."""
    return [*_flat(yaml.safe_load_all(file.read_text(encoding="utf-8")))]


def _flat(documents: Iterator[object]) -> Iterator[Json]:
    for one in documents:
        if isinstance(one, dict) and one.get("kind") == "List":
            yield from _flat(iter(one.get("items") or ()))
        elif isinstance(one, dict) and isinstance(one.get("metadata"), dict):
            yield one


async def _judged(file: Path) -> Outcome:
    documents = documents_of(file)
    async with AsyncExitStack() as stack:
        stage = Stage()
        await stack.enter_async_context(stage.running())
        stage.open()
        for one in world_for(documents, space=SPACE):
            answer = await _applied(stage, one)
            assert answer.code < 300, (one["kind"], one["metadata"]["name"], answer.message)
        await stage.settle(most=_MOST_TASKS)
        applied = [(one, await _applied(stage, one)) for one in documents]
        for seconds in _STEPS:
            await stage.settle(most=_MOST_TASKS)
            await stage.pass_time(seconds)
        outcomes = [await _outcome(stage, one, answer) for one, answer in applied]
        faults = [f"{one.task} crashes: {one.error} at {one.place}" for one in stage.crashes]
        outcomes += [Outcome("wrong", text) for text in (*faults, *stage.mistakes)]
    return _worst(outcomes)


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    rank = max((OUTCOMES.index(one.word) for one in outcomes), default=0)
    says = dict.fromkeys(one.says for one in outcomes if one.word == OUTCOMES[rank] and one.says)
    return Outcome(OUTCOMES[rank], "; ".join(says))


async def _applied(stage: Stage, obj: Json) -> Answer:
    """Do what `kubectl apply` does with a new object: nothing is sent of a kind that is unknown."""
    kind = _served(stage, obj)
    if kind is None:
        text = f'no matches for kind "{obj.get("kind")}" in version "{obj.get("apiVersion")}"'
        return Answer(404, body_of({"message": text}), ())
    metadata = obj["metadata"]
    space = str(metadata.get("namespace") or SPACE) if kind.namespaced else ""
    if kind.namespaced:
        obj = {**obj, "metadata": {**metadata, "namespace": space}}
    where = path_of(kind, namespace=space) + "?fieldValidation=Strict"
    answer = await stage.send(Send("POST", where, body_of(obj)))
    if answer.code == 409:
        there = path_of(kind, str(metadata["name"]), namespace=space)
        media = "application/merge-patch+json"
        answer = await stage.send(Send("PATCH", there, body_of(obj), media))
    return answer


def _served(stage: Stage, obj: Json) -> Served | None:
    group, _, version = str(obj.get("apiVersion")).rpartition("/")
    for one in stage.api.catalogue.served():
        if (one.group, one.version, one.kind) == (group, version, obj.get("kind")):
            return one
    return None


def _is_of_no_server(obj: Json) -> bool:
    """Say whether a document is the settings file of a program, or of a version that is gone."""
    version = str(obj.get("apiVersion"))
    group = version.partition("/")[0]
    return version.startswith(_GONE) or group.startswith("config.") or ".config." in group


async def _outcome(stage: Stage, obj: Json, answer: Answer) -> Outcome:
    name = f"{obj.get('kind')}/{obj['metadata'].get('name')}"
    if answer.code >= 500:
        return Outcome("wrong", f"{name}: the API answered {answer.code}")
    if answer.code >= 300:
        is_unknown = answer.code == 404 and not _is_of_no_server(obj)
        return Outcome("wrong" if is_unknown else "refused", f"{name}: {answer.message}")
    stored = orjson.loads(answer.body)
    kind = _served(stage, obj)
    assert kind is not None
    warned = " ".join(answer.warnings)
    if _DONE.search(warned):
        return Outcome("runs")
    if _WAITS.search(warned):
        return Outcome("waits", f"{name}: {warned}")
    not_done = [one for one in answer.warnings if _NOT_DONE.search(one)]
    where = path_of(kind, stored["metadata"]["name"], stored["metadata"].get("namespace", ""))
    found = await stage.send(Send("GET", where))
    if found.code != 200:  # it is over, and its time to live as well
        return Outcome("runs") if not not_done else Outcome("warns", f"{name}: {not_done[0]}")
    why = answer_why(await gather(stage.client, orjson.loads(found.body)))
    told = None if why["state"] == "unsupported" else _judge(why)
    if told is not None and told.word == "runs":
        return told
    if not_done:
        return Outcome("warns", f"{name}: {' '.join(not_done)}")
    wants_none = (stored.get("spec") or {}).get("replicas") == 0
    if (wants_none or (kind.group, kind.kind) in _ACTED_UPON) and not why.get("pods"):
        return Outcome("runs")
    if (stored.get("spec") or {}).get("replicas") == 0:
        return Outcome("runs")  # to be scaled up by its reader
    if told is not None:
        return Outcome(told.word, f"{name}: {told.says}")
    return Outcome("wrong", f"{name}: is stored in silence, and nothing happens ({why['state']})")


def _judge(why: Json) -> Outcome | None:
    """Return how an object with pods, or one that asks for some, stands; None of any other."""
    state, message = why["state"], str(why.get("message", ""))
    pods = why.get("pods") or {}
    if pods.get("Failed") or (state == "finished" and why.get("reason") == "Failed"):
        return Outcome("wrong", f"failed: {message} {pods}")
    if state == "finished" or pods.get("Running") or pods.get("Succeeded"):
        waiting = pods.get("Pending", 0)
        return Outcome("waits", f"{waiting} pods wait: {message}") if waiting else Outcome("runs")
    if state == "waiting":
        return Outcome("waits" if message else "wrong", message or "waits without a reason")
    if state == "stuck":  # until its author mends it, or makes what it refers to
        return Outcome("waits" if message else "wrong", message or "stuck without a reason")
    if why.get("isJob") or pods or why.get("workload"):
        return Outcome("wrong", f"nothing happens: {state} {message} {pods}")
    return None
