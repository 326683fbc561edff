"""Events in words: the subject and the text of a mail, and the documents that webhooks are sent.

Subjects about jobs of sbatch have Slurm's form, which people filter their mail by:

    Slurm Job_id=42 Name=train Began, Queued time 00:00:05
    Slurm Job_id=42 Name=train Ended, Run time 01:00:00, COMPLETED, ExitCode 0
    Slurm Array Summary Job_id=7_* (7) Name=sweep Failed, FAILED, ExitCode 1
    Slurm Array Task Job_id=7_3 (11) Name=sweep Reached 80% of time limit, Run time 00:48:00

Names and reasons come from users and programs: control characters are taken out everywhere, and
what Slack or Teams would read as a link or a mention is defused. Several events are one summary.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from unisono.kinds.policy.notifications import Form
from unisono.kube.form import Json
from unisono.notify.events import Happened
from unisono.notify.subject import Subject

if TYPE_CHECKING:
    from email.message import EmailMessage

_MOST_LETTERS = 200  # of a name or a title
_MOST_WHY = 1000
# Lines of a summary; the rest is a number. Slack shows about that many without folding them.
_MOST_LISTED = 20

# Titles stay in one line: filters of mail look for them, and not all of them unfold lines.
_LONGEST_LINE = _MOST_LETTERS + 50

_VERBS: Mapping[str, str] = {
    "begin": "has begun",
    "end": "has ended",
    "fail": "has failed",
    "preempt": "was stopped and waits again",
    "delay": "starts later than promised",
    "time-limit": "has reached its time limit",
    "time-limit-90": "has used 90% of its time limit",
    "time-limit-80": "has used 80% of its time limit",
    "time-limit-50": "has used 50% of its time limit",
    "invalid-dependency": "can never start: its dependency is invalid",
}
_SLURM_VERBS: Mapping[str, str] = {
    "begin": "Began",
    "end": "Ended",
    "fail": "Failed",
    "preempt": "Requeued",
    "delay": "Delayed",
    "time-limit": "Reached time limit",
    "time-limit-90": "Reached 90% of time limit",
    "time-limit-80": "Reached 80% of time limit",
    "time-limit-50": "Reached 50% of time limit",
    "invalid-dependency": "Invalid dependency",
}


class Notice(msgspec.Struct, frozen=True):
    """One event of one job."""

    subject: Subject
    happened: Happened

    @property
    def ident(self) -> str:
        """What tells it from all other notices."""
        return f"{self.subject.uid}/{self.happened.event}/{self.happened.mark}"


def title(notice: Notice) -> str:
    """Return a notice as one line: the subject of a mail."""
    about, what = notice.subject, notice.happened
    if not about.is_slurm:
        return _clean(f"{about.title} {_VERBS[what.event]}", _MOST_LETTERS)
    which = "Slurm"
    number = about.slurm_id
    if about.is_array:
        which, number = "Slurm Array Summary", f"{number} ({number.partition('_')[0]})"
    elif about.slurm_number:
        which, number = "Slurm Array Task", f"{number} ({about.slurm_number})"
    parts = [f"{which} Job_id={number} Name={about.slurm_name} {_SLURM_VERBS[what.event]}"]
    if what.event == "begin" and what.queued_s >= 0:
        parts.append(f"Queued time {duration(what.queued_s)}")
    elif what.ran_s >= 0:
        parts.append(f"Run time {duration(what.ran_s)}")
    if what.event in ("end", "fail") and about.slurm_state:
        parts.append(about.slurm_state)
        code, _, signal = about.exit_code.partition(":")
        if code and signal in ("", "0"):
            parts.append(f"ExitCode {code}")
    if what.event == "delay" and what.start:
        parts.append(f"now expected at {clock(what.start)}")
    return _clean(", ".join(parts), _MOST_LETTERS)


def facts(notice: Notice) -> list[tuple[str, str]]:
    """Return what is to be said besides, as pairs of a word and a value."""
    about, what = notice.subject, notice.happened
    found = [("Job", about.title), ("Event", _VERBS[what.event]), ("Time", clock(what.at))]
    if what.queued_s >= 0:
        found.append(("Waited", duration(what.queued_s)))
    if what.ran_s >= 0:
        found.append(("Ran", duration(what.ran_s)))
    if what.promised:
        found.append(("Promised start", clock(what.promised)))
        found.append(("New start", clock(what.start) if what.start else "not known yet"))
    if what.why:
        found.append(("Reason", _for_people(what.why)))
    found.append(("Namespace", about.namespace))
    found += [("Queue", about.queue)] if about.queue else []
    found += [("User", about.user)] if about.user else []
    return [(word, _clean(value, _MOST_WHY)) for word, value in found]


def mail(notices: Sequence[Notice], *, sender: str, to: str, now: float) -> EmailMessage:
    """Return the mail about some notices.

    Its id follows from what it says: a program that gets it twice, because a process died between
    sending and recording, can tell that it is the same.
    """
    # Imported here: they weigh some megabytes, and a cluster without mails should not carry them.
    from email.headerregistry import Address
    from email.message import EmailMessage
    from email.policy import SMTP
    from email.utils import format_datetime

    def address(text: str) -> Address:
        user, _, domain = text.rpartition("@")
        return Address(username=user, domain=domain)

    made = EmailMessage(policy=SMTP.clone(max_line_length=_LONGEST_LINE))
    made["Subject"] = _heading(notices)
    made["From"] = address(sender)
    made["To"] = address(to)
    made["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
    idents = "\n".join((to, *(one.ident for one in notices)))
    digest = hashlib.sha256(idents.encode()).hexdigest()[:32]
    made["Message-ID"] = f"<{digest}@{sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"  # no vacation replies (RFC 3834)
    made.set_content("\n".join(_lines(notices)) + "\n")
    return made


def document(form: Form, notices: Sequence[Notice]) -> Json:
    """Return what a webhook is sent about some notices."""
    match form:
        case "generic":
            return _generic(notices)
        case "slack":
            return _slack(notices)
        case "teams":
            return _teams(notices)


def _heading(notices: Sequence[Notice]) -> str:
    if len(notices) == 1:
        return title(notices[0])
    jobs = len({one.subject.uid for one in notices})
    return f"Unisono: {len(notices)} events of {jobs} {'job' if jobs == 1 else 'jobs'}"


def _lines(notices: Sequence[Notice]) -> list[str]:
    if len(notices) == 1:
        return [f"{word + ':':<16}{value}" for word, value in facts(notices[0])]
    return [*_listed(notices), "", "They came faster than the limit of one recipient allows."]


def _listed(notices: Sequence[Notice]) -> list[str]:
    shown = [f"{clock(one.happened.at)}  {title(one)}" for one in notices[:_MOST_LISTED]]
    more = len(notices) - len(shown)
    return [*shown, f"and {more} more"] if more else shown


def _generic(notices: Sequence[Notice]) -> Json:
    items = [_item(one) for one in notices[:_MOST_LISTED]]
    if len(notices) == 1:
        return {"apiVersion": "unisono.dev/v1", "kind": "Notification", **items[0]}
    return {
        "apiVersion": "unisono.dev/v1",
        "kind": "NotificationList",
        "items": items,
        "more": len(notices) - len(items),
    }


def _item(notice: Notice) -> Json:
    about, what = notice.subject, notice.happened
    job = {
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "workload": about.workload,
        "queue": about.queue,
        "user": about.user,
        "slurmJobId": about.slurm_id,
        "slurmJobName": about.slurm_name,
        "slurmState": about.slurm_state if what.event in ("end", "fail") else "",
        "exitCode": about.exit_code if what.event in ("end", "fail") else "",
    }
    made: Json = {
        "id": notice.ident,
        "event": what.event,
        "time": rfc3339(what.at),
        "title": title(notice),
        "reason": _clean(what.why, _MOST_WHY),
        "job": {key: value for key, value in job.items() if value},
    }
    if what.queued_s >= 0:
        made["queuedSeconds"] = int(what.queued_s)
    if what.ran_s >= 0:
        made["ranSeconds"] = int(what.ran_s)
    if what.promised:
        made["promisedStart"] = rfc3339(what.promised)
    if what.start:
        made["expectedStart"] = rfc3339(what.start)
    return made


def _slack(notices: Sequence[Notice]) -> Json:
    heading = f"*{_defused_for_slack(_heading(notices))}*"
    if len(notices) == 1:
        lines = [f"{word}: {value}" for word, value in facts(notices[0])[1:]]
    else:
        lines = _listed(notices)
    return {"text": "\n".join((heading, *map(_defused_for_slack, lines)))}


def _defused_for_slack(text: str) -> str:
    """Keep a text from being read as a link, a mention or a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _teams(notices: Sequence[Notice]) -> Json:
    heading = _defused_for_teams(_heading(notices))
    body: list[Json] = [{"type": "TextBlock", "text": heading, "weight": "Bolder", "wrap": True}]
    if len(notices) == 1:
        pairs = [
            {"title": word, "value": _defused_for_teams(value)} for word, value in facts(notices[0])
        ]
        body.append({"type": "FactSet", "facts": pairs})
    else:
        lines = map(_defused_for_teams, _listed(notices))
        body += [{"type": "TextBlock", "text": one, "wrap": True} for one in lines]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _defused_for_teams(text: str) -> str:
    """Keep a text from being read as a link."""
    return text.replace("](", "] (")


def duration(seconds: float) -> str:
    """Return a time as Slurm writes it.

    >>> duration(5), duration(90_061)
    ('00:00:05', '1-01:01:01')
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    text = f"{hour:02}:{minute:02}:{second:02}"
    return f"{days}-{text}" if days else text


def clock(at: float) -> str:
    """Return a time for people; recipients are anywhere, so its zone is said."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def _for_people(sentence: str) -> str:
    """Return a sentence of a condition with its times as people read them."""
    return _INSTANT.sub(lambda found: clock(datetime.fromisoformat(found[0]).timestamp()), sentence)


def rfc3339(at: float) -> str:
    """Return a time for programs."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _clean(text: str, most: int) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= most else f"{plain[: most - 2]} …"
