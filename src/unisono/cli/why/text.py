"""The answer of `unisono why` in words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from unisono.apiserver.times import age
from unisono.cli.language import say
from unisono.cli.start_times import TIMES, limit_words, start_words
from unisono.cli.tables import WIDTH
from unisono.cli.times import ahead, clock_time, local_times
from unisono.cli.why.sentences import (
    ahead_words,
    around_words,
    guess_words,
    passing_words,
    repair_words,
)
from unisono.cli.workload_state import MEANINGS, NO_QUEUE, UNREADABLE
from unisono.kinds.scalar import instant_ms
from unisono.kube.form import Json

# Facts about quota and nodes; what would change one of them may not be enough to start.
_OF_CAPACITY = (
    "QuotaExhausted",
    "GangDoesNotFit",
    "ExceedsMaximum",
    "FlavorMismatch",
    "ResourceNotCovered",
)
_UIDS = re.compile(r" \(UID: [^)]*\)")  # -o json has them
_MOST_PLACES = 12  # a thousand nodes would bury everything else


def text(answer: Json, now: float) -> str:
    """Return the whole text, with a line end."""
    lines = [say(one) for one in (_headline(answer), *_about(answer, now))]
    for title, items in (
        ("why", list(_why(answer, now))),
        ("what would change it", list(_changes(answer, now))),
        ("where", list(_where(answer))),
        ("problems", list(_problems(answer, now))),
        ("history", list(_history(answer, now))),
        ("warnings", answer.get("warnings") or []),
    ):
        if items:
            lines += ["", say(f"{title}:"), *(_item(local_times(one, now)) for one in items)]
    if answer["state"] in ("waiting", "unknown", "buying", "checked"):
        lines += ["", say(f"estimate: {_estimate(answer, now)}")]
    return "\n".join(lines) + "\n"


def _estimate(answer: Json, now: float) -> str:
    is_never = (answer.get("rootCause") or {}).get("verdict") == "never"
    if is_never or answer.get("message", "").startswith("never"):  # of a pod without a Workload
        return "never in this cluster as it is; see what would change it"
    if answer.get("estimate"):
        return start_words(answer["estimate"], now)
    return guess_words(answer, now)


def _headline(answer: Json) -> str:
    place = f"{answer['namespace']}/" if answer["namespace"] else ""
    name = f"{answer['kind']} {place}{answer['name']}"
    if "asked" in answer:
        asked = answer["asked"]
        name = f"{asked['kind']} {asked['name']} is part of {name}, which"
    if "parts" in answer:
        return f"{name} {_parts(answer['parts'])}."
    return f"{name} {_state(answer)}."


def _parts(parts: Json) -> str:
    """Say in which states the Workloads of its pods, groups or jobs are."""
    states = parts["states"]
    count = sum(states.values())
    told = ", ".join(f"{number} {state}" for state, number in states.items())
    shown = f"; this is about {parts['shown']}" if parts["shown"] else ""
    return f"has {count} Workload{'s' if count != 1 else ''}: {told}{shown}"


def _state(answer: Json) -> str:
    state = answer["state"]
    if state == "unknown":
        return f"has no Workload in queue {answer['queue']} yet"
    if state == "stuck" and answer.get("reason") == UNREADABLE:
        return "is not processed"
    if state == "stuck":
        return "is invalid and cannot start"
    if state == "unsupported":
        return "is stored, and nothing acts on it here"
    if state != "unmanaged":
        queue, behind = answer.get("queue"), answer.get("clusterQueue")
        if queue == NO_QUEUE:
            return f"{MEANINGS[state].format(queue='')}; it is in no queue and needs only nodes"
        place = f" in queue {queue}" if queue else ""
        place += f" (ClusterQueue {behind})" if queue and behind and behind != queue else ""
        position = answer.get("position")
        if position:
            place += f", position {position['place']} of {position['of']}"
        return MEANINGS[state].format(queue=place)
    if answer.get("isJob", True):
        return "is in no queue: it is not managed, and its pods start when nodes have room"
    return "is not a job, so no queue has to admit it"


def _about(answer: Json, now: float) -> Iterator[str]:
    if "since" in answer:
        since = clock_time(instant_ms(answer["since"]) / 1000, now)
        yield f"  since     {since} ({age(answer['since'], now)} ago)"
    for number, one in enumerate(answer.get("asks") or ()):
        each = ", ".join(f"{amount} {name}" for name, amount in one["each"].items()) or "nothing"
        pods = f"{one['pods']} pod{'s' if one['pods'] != 1 else ''}"
        yield f"  {'asks for' if number == 0 else '':<8}  {pods} of {one['podSet']}, each {each}"
    if answer.get("priority"):
        yield f"  priority  {answer['priority']}"
    if answer.get("limit"):
        ends = ""
        if answer.get("until"):
            ends = f", ends by {ahead(instant_ms(answer['until']) / 1000, now)}"
        yield f"  limit     {limit_words(answer['limit'])}{ends}"
    progress = answer.get("progress")
    if progress:
        of = f" of {progress['total']}" if progress["total"] else ""
        yield f"  progress  step {progress['step']}{of} ({age(progress['at'], now)} ago)"
    for one in answer.get("slow") or ():
        yield f"  slow      pod {one['pod']} delays the others ({age(one['since'], now)})"
    if answer.get("workload"):
        yield f"  workload  {answer['workload']}"


def _why(answer: Json, now: float) -> Iterator[str]:
    root_cause = answer.get("rootCause")
    if root_cause is not None:
        says = local_times(root_cause["says"], now)
        yield says
        is_never = root_cause["verdict"] == "never"
        if is_never or len(root_cause["ways"]) > 1:  # every flavor by name; facts are among them
            messages = [local_times(way["says"], now) for way in root_cause["ways"]]
            yield from (one for one in messages if not _is_in(says, one))
            yield from () if is_never else around_words(answer, now)
            return
    if _is_behind(answer):  # its place as it is now, and why the first one waits
        yield from ahead_words(answer["position"])
    elif answer.get("facts"):
        yield from dict.fromkeys(
            _fact(fact) for fact in answer["facts"] if fact.get("fact") not in TIMES
        )
        yield from around_words(answer, now)
    elif answer.get("checks"):
        yield from map(_check, answer["checks"])
    elif answer.get("message"):
        yield answer["message"]
    elif answer["state"] == "waiting":
        yield "not evaluated yet; if this does not change, check that the scheduler is running"
    elif answer["state"] == "unknown":
        yield "it has no Workload yet; its warnings or its status may say more"


def _check(one: Json) -> str:
    """Say how an admission check stands."""
    message = f": {one['message']}" if one["message"] else ""
    by = f" (answered by {one['by']})" if one["by"] else ""
    return f"admission check {one['name']} is {one['state']}{message}{by}"


def _is_in(says: str, way: str) -> bool:
    """Say whether a root cause says what a way says."""
    return way in says or (": never: " in way and way.partition(": never: ")[2] in says)


def _is_behind(answer: Json) -> bool:
    """Say whether no more is known than that other workloads go first."""
    if answer["state"] != "waiting" or "ahead" not in (answer.get("position") or {}):
        return False
    facts = [one for one in answer.get("facts") or () if one.get("fact") not in TIMES]
    if facts:
        return all(one.get("fact") == "BehindInQueue" for one in facts)
    return not answer.get("message")


def _problems(answer: Json, now: float) -> Iterator[str]:
    """Say which of its nodes are broken, away or closed."""
    for one in answer.get("nodeTrouble") or ():
        since = f" since {clock_time(instant_ms(one['since']) / 1000, now)}" if one["since"] else ""
        message = f": {one['message']}" if one["message"] else ""
        yield f"node {one['node']} is {one['state']}{since}{message}"


def _fact(fact: Json) -> str:
    """Return a fact's sentence; what each pool of machines says gets a line of its own."""
    says = str(fact["says"])
    return "\n".join(says.split("; ")) if fact.get("fact") == "CannotBuy" else says


def _changes(answer: Json, now: float) -> Iterator[str]:
    facts = answer.get("facts") or ()
    root_cause = answer.get("rootCause") or {}
    if root_cause:  # it was tried; what helps against a fact alone may not be enough
        marked = root_cause.get("inTheWay") or ()
        yield from dict.fromkeys(
            local_times(one.get("changes") or one["says"], now) for one in marked
        )
        if root_cause.get("orLess"):
            yield "or a smaller request"
        facts = [one for one in facts if one.get("fact") not in _OF_CAPACITY]
    if _is_behind(answer):
        yield from passing_words(answer["position"])
    elif root_cause.get("verdict") != "never":
        known = {one.get("changes") for one in root_cause.get("inTheWay") or ()}
        helps = (
            _change(fact, answer) for fact in facts if fact.get("changes") not in (None, *known)
        )
        yield from dict.fromkeys(helps)
    for one in answer.get("checks") or ():
        by = one["by"] or "the controller of the check"
        queue = answer["clusterQueue"]
        yield f"{by} sets it to Ready; or take {one['name']} out of ClusterQueue {queue}"
    if answer["state"] == "repairing":
        yield repair_words(answer, now)
    if answer["state"] == "buying":
        yield "nothing to do: all of its pods start when the last machine is ready"
    if answer.get("reason") == UNREADABLE:
        place = f" -n {answer['namespace']}" if answer["namespace"] else ""
        command = f"kubectl delete workload {answer['workload']}{place}"
        yield f"correct its status; or delete it, and the job gets a new one: {command}"
    elif answer["state"] == "stuck":
        yield "correct the manifest, or create what it refers to"
    if answer["state"] == "unmanaged" and answer.get("isJob"):
        yield "to queue it, label it: kueue.x-k8s.io/queue-name=NAME"


def _change(fact: Json, answer: Json) -> str:
    """Return what would change a fact; with the command, where it is one."""
    changes = str(fact["changes"])
    if fact.get("fact") != "Held":
        return changes
    place = f" -n {answer['namespace']}" if answer["namespace"] else ""
    kind = answer["kind"].lower()
    return f"{changes} (kubectl annotate{place} {kind} {answer['name']} unisono.dev/hold-)"


def _where(answer: Json) -> Iterator[str]:
    phases = answer.get("pods")
    if phases:
        yield "pods: " + ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    places = answer.get("places") or []
    for one in places[:_MOST_PLACES]:
        pods = f"{one['pods']} pod{'s' if one['pods'] != 1 else ''}"
        of = f" of {one['podSet']}" if one["podSet"] else ""
        yield f"node {one['node']}: {pods}{of}"
    if len(places) > _MOST_PLACES:
        yield f"and {len(places) - _MOST_PLACES} more nodes; -o json has them all"


def _history(answer: Json, now: float) -> Iterator[str]:
    history = answer.get("history") or {}
    counts = history.get("evictions") or {}
    if counts:
        reasons = ", ".join(f"{reason} {count}" for reason, count in counts.items())
        yield f"evicted {_times(sum(counts.values()))}: {reasons}"
    last = history.get("lastEviction")
    if last:
        messages = _UIDS.sub("", last["message"])
        yield f"last eviction: {messages or 'no reason was given'}"
    if history.get("ranSeconds"):
        yield f"ran {history['ranSeconds']} s before that"
    if history.get("restarts"):
        yield f"restarted {_times(history['restarts'])}"
    if history.get("lastIncident"):
        yield f"last incident: {history['lastIncident']}"
    if history.get("failedPods"):
        yield f"failed pods: {history['failedPods']}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _item(words: str) -> str:
    """Return an item of a list; its further lines are set in."""
    first, *more = (say(line) for line in words.split("\n"))
    return "\n".join([_wrapped(first, "  - "), *(_wrapped(line, "      ") for line in more)])


def _wrapped(words: str, indent: str) -> str:
    return textwrap.fill(
        words,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * (len(indent) if indent.strip() else len(indent) + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )
