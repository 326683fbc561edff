"""The pods of a job: one per node, the first of which runs the script.

Whatever a user wrote reaches the shell as a value of the environment or as an argument, never as
part of a program.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.job_kinds import slurm
from unisono.control.jobs.adapter import Injection, injected
from unisono.control.jobs.pods import pod_from
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.digits import whole_number
from unisono.slurm.environment import AllocatedNode, environment
from unisono.slurm.file_names import output_files
from unisono.slurm.labels import GRANTED_OPTION

_FOLDER = "/run/unisono/slurm"
# Runs the script with its files, where it is to run; knows nothing of what is in it.
_BATCH = """\
[ -r "$UNISONO_SLURM/environment" ] && . "$UNISONO_SLURM/environment"
export SLURM_TASK_PID=$$ SLURM_NODEID=0
node=${SLURMD_NODENAME%%.*}
named() {
  text=$1
  while :; do case $text in *"$UNISONO_SLURM_MARK"*)
    text=${text%%"$UNISONO_SLURM_MARK"*}$node${text#*"$UNISONO_SLURM_MARK"};; *) break;; esac
  done
  printf '%s' "$text"
}
out=$(named "$UNISONO_SLURM_OUTPUT"); err=$(named "$UNISONO_SLURM_ERROR")
in=$(named "$UNISONO_SLURM_INPUT")
cd -- "$SLURM_SUBMIT_DIR" || exit 1
[ "$UNISONO_SLURM_APPEND" = 1 ] || { : > "$out"; [ -z "$err" ] || : > "$err"; } || exit 1
exec < "$in" >> "$out" || exit 1
if [ -z "$err" ]; then exec 2>&1; else exec 2>> "$err" || exit 1; fi
if [ -n "$UNISONO_SLURM_SIGNAL" ]; then
  "$UNISONO_SLURM/script" "$@" &
  child=$!
  trap 'kill -TERM "$child"' TERM
  ( sleep "$UNISONO_SLURM_SIGNAL_AFTER"; kill -s "$UNISONO_SLURM_SIGNAL" "$child" ) 2>/dev/null &
  timer=$!
  while :; do wait "$child"; code=$?; kill -0 "$child" 2>/dev/null || break; done
  kill "$timer" 2>/dev/null
  exit "$code"
fi
exec "$UNISONO_SLURM/script" "$@"
"""
# The other nodes wait for steps that `srun` starts on them.
_WAIT = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"


def pods_of(
    job: Json, allocated: Sequence[AllocatedNode], sets: Mapping[str, Injection]
) -> list[Json]:
    """Return all pods of a job that was admitted."""
    made: list[Json] = []
    number = 0
    hosts = [f"{_host(job, place)}.{subdomain(job)}" for place in range(len(allocated))]
    for group in job["spec"]["groups"]:
        # One for each node that it has: the number in the manifest is only what was asked for.
        for place in range(min(int(group["nodes"]), len(allocated) - number)):
            made.append(_pod(job, group, number, place, allocated, hosts, sets))
            number += 1
    return made


def subdomain(job: Json) -> str:
    """Return the service that gives a job's pods their names."""
    return str(job["metadata"]["name"])[:63].rstrip("-.")


def service_of(job: Json) -> Json:
    """Return that service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": subdomain(job),
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {slurm.JOB_ID: str(job["spec"]["jobId"])},
        },
    }


def restarts_of(job: Json) -> int:
    """Return how often a job was queued again."""
    return int((job.get("status") or {}).get("restarts") or 0)


def pod_name(job: Json, number: int) -> str:
    """Return the name of the pod of a node."""
    again = restarts_of(job)
    return f"{job['metadata']['name']}-r{again}-{number}" if again else _host(job, number)


def _host(job: Json, number: int) -> str:
    return f"{subdomain(job)[:58]}-{number}"


def _pod(
    job: Json,
    group: Json,
    number: int,
    place: int,
    allocated: Sequence[AllocatedNode],
    hosts: Sequence[str],
    sets: Mapping[str, Injection],
) -> Json:
    template: Json = copy.deepcopy(group["template"])
    injection = sets.get(group["name"])
    if injection is not None:
        changes = injected(template, injection)
        template["metadata"] = {**(template.get("metadata") or {}), **changes["metadata"]}
        template["spec"] = {**template["spec"], **changes.get("spec", {})}
    labels = {
        slurm.JOB_ID: str(job["spec"]["jobId"]),
        slurm.RESTART: str(restarts_of(job)),
        slurm.NUMBER: str(place),
    }
    pod = pod_from(template, job, pod_name(job, number), labels=labels)
    spec = pod["spec"]
    spec.setdefault("schedulerName", names.SCHEDULER)
    spec |= {
        "restartPolicy": "Never",
        "hostname": _host(job, number),
        "subdomain": subdomain(job),
        "terminationGracePeriodSeconds": slurm.KILL_WAIT,
    }
    first, *others = spec["containers"]
    spec["containers"] = [_container(job, first, number, allocated, hosts), *others]
    if number == 0:
        _mount_script(job, spec)
        run = (job["metadata"].get("annotations") or {}).get("unisono.dev/run-seconds")
        if run:
            pod["metadata"]["annotations"]["unisono.dev/run-seconds"] = run
    else:
        pod["metadata"]["annotations"]["unisono.dev/run-seconds"] = "forever"
    return pod


def _container(
    job: Json, written: Json, number: int, allocated: Sequence[AllocatedNode], hosts: Sequence[str]
) -> Json:
    made = dict(written)
    variables = environment(job, allocated)
    variables |= {
        "SLURM_NODEID": str(number),
        "UNISONO_SLURM_PODS": " ".join(hosts),
        "UNISONO_SLURM_TASKS": " ".join(str(node.tasks) for node in allocated),
    }
    if number == 0:
        variables |= _for_batch(job)
        made["command"] = ["/bin/sh", "-c", _literal(_BATCH), "slurm_script"]
        made["args"] = [_literal(word) for word in job["spec"].get("arguments") or ()]
    else:
        made["command"] = ["/bin/sh", "-c", _literal(_WAIT)]
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    made["env"] = [
        *(written.get("env") or ()),
        *({"name": name, "value": _literal(value)} for name, value in variables.items()),
        {"name": "SLURMD_NODENAME", "valueFrom": node},
        {"name": "SLURM_TOPOLOGY_ADDR", "valueFrom": node},
    ]
    return made


def _for_batch(job: Json) -> dict[str, str]:
    """Return where the script is, and where its files go."""
    spec, options = job["spec"], job["spec"].get("options") or {}
    output, error, given = output_files(spec, restarts_of(job))
    signal, after = _signal(job)
    return {
        "UNISONO_SLURM": _FOLDER,
        "UNISONO_SLURM_MARK": "\x01",
        "UNISONO_SLURM_OUTPUT": output,
        "UNISONO_SLURM_ERROR": error,
        "UNISONO_SLURM_INPUT": given,
        "UNISONO_SLURM_APPEND": "1" if options.get("open-mode") == "append" else "0",
        "UNISONO_SLURM_SIGNAL": signal,
        "UNISONO_SLURM_SIGNAL_AFTER": str(after),
    }


def _signal(job: Json) -> tuple[str, int]:
    """Return the signal of `--signal`, and after how many seconds it comes."""
    text = (job["spec"].get("options") or {}).get("signal", "")
    limit = limit_seconds(job)
    if not text or limit is None:
        return "", 0
    number, _, before = text.rpartition(":")[2].partition("@")
    name = number.upper().removeprefix("SIG")
    known = whole_number(before)
    ahead = 60 if known is None else known
    return (name, max(0, limit - ahead)) if name.isalnum() else ("", 0)


def limit_seconds(job: Json) -> int | None:
    """Return a job's time limit; None if it has none."""
    from unisono.kinds.times import TIME_LIMIT, limit_ms

    granted = (job["spec"].get("options") or {}).get(GRANTED_OPTION)
    text = granted or (job["metadata"].get("annotations") or {}).get(TIME_LIMIT)
    if text is None:
        return None
    try:
        limit = limit_ms(text)
    except ValueError:
        return None
    return limit // 1000 if limit is not None else None


def _literal(text: str) -> str:
    """Return a text that Kubernetes does not look for variables in."""
    return text.replace("$", "$$")


def _mount_script(job: Json, spec: Json) -> None:
    secret = job["spec"].get("script")
    if not secret:
        return
    volume = {"name": "slurm-script", "secret": {"secretName": secret, "defaultMode": 0o755}}
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]
    first = spec["containers"][0]
    mount = {"name": "slurm-script", "mountPath": _FOLDER, "readOnly": True}
    first["volumeMounts"] = [*(first.get("volumeMounts") or ()), mount]
