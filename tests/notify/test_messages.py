"""Events in words."""

from __future__ import annotations

import json
from email import message_from_bytes
from email.policy import default
from typing import Any

import msgspec
import pytest

from unisono.notify.events import Happened
from unisono.notify.messages import Notice, document, mail, title
from unisono.notify.subject import Subject

T0 = 1_700_000_000.0
JOB = Subject(
    uid="u", workload="job-train-1", namespace="team-a", kind="Job", name="train", queue="main"
)
SLURM = msgspec.structs.replace(JOB, kind="SlurmJob", slurm_id="42", slurm_name="train", user="ada")
ENDED = Happened(event="end", mark="m", at=T0, ran_s=3600, why="Job is COMPLETED (0:0)")


def notice(event: Any = "end", subject: Subject = JOB, **more: Any) -> Notice:
    return Notice(subject, Happened(event=event, mark="m", at=T0, **more))


def over(state: str, code: str, **more: Any) -> Subject:
    return msgspec.structs.replace(SLURM, slurm_state=state, exit_code=code, **more)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (notice(), "Job team-a/train has ended"),
        (notice("preempt"), "Job team-a/train was stopped and waits again"),
        (
            notice("begin", SLURM, queued_s=5),
            "Slurm Job_id=42 Name=train Began, Queued time 00:00:05",
        ),
        (
            notice("end", over("COMPLETED", "0:0"), ran_s=3600),
            "Slurm Job_id=42 Name=train Ended, Run time 01:00:00, COMPLETED, ExitCode 0",
        ),
        (
            notice("fail", over("FAILED", "3:0"), ran_s=1),
            "Slurm Job_id=42 Name=train Failed, Run time 00:00:01, FAILED, ExitCode 3",
        ),
        (
            notice("fail", over("TIMEOUT", "0:15"), ran_s=90_061),
            "Slurm Job_id=42 Name=train Failed, Run time 1-01:01:01, TIMEOUT",
        ),
        (
            notice("end", over("COMPLETED", "[0-2]", slurm_id="42_*", is_array=True)),
            "Slurm Array Summary Job_id=42_* (42) Name=train Ended, COMPLETED, ExitCode [0-2]",
        ),
        (
            notice(
                "time-limit-80",
                msgspec.structs.replace(SLURM, slurm_id="7_3", slurm_number="11"),
                ran_s=48,
            ),
            "Slurm Array Task Job_id=7_3 (11) Name=train Reached 80% of time limit, "
            "Run time 00:00:48",
        ),
        (
            notice("delay", SLURM, start=T0 + 60, promised=T0),
            "Slurm Job_id=42 Name=train Delayed, now expected at 2023-11-14 22:14 UTC",
        ),
    ],
)
def test_titles(made: Notice, said: str) -> None:
    assert title(made) == said


def read(*notices: Notice) -> Any:
    made = mail(notices, sender="unisono@example.org", to="ada@example.org", now=T0)
    return message_from_bytes(made.as_bytes(), policy=default)


def test_a_mail_says_what_happened_and_why() -> None:
    found = read(Notice(JOB, ENDED))
    assert found["Subject"] == "Job team-a/train has ended"
    assert (found["From"], found["To"]) == ("unisono@example.org", "ada@example.org")
    assert found["Auto-Submitted"] == "auto-generated"
    assert found.get_content().splitlines() == [
        "Job:            Job team-a/train",
        "Event:          has ended",
        "Time:           2023-11-14 22:13 UTC",
        "Ran:            01:00:00",
        "Reason:         Job is COMPLETED (0:0)",
        "Namespace:      team-a",
        "Queue:          main",
    ]


def test_people_read_times_of_conditions_like_all_others() -> None:
    why = "0/2 machines ready; late, given up at 2023-11-14T22:30:00Z"
    made = notice("delay", why=why, start=T0 + 60, promised=T0)
    assert "given up at 2023-11-14 22:30 UTC" in read(made).get_content()
    assert "2023-11-14T22:30:00Z" in str(document("generic", [made])), "programs do not"


def test_the_same_mail_has_the_same_id_and_another_has_another() -> None:
    first, second = read(Notice(JOB, ENDED)), read(Notice(JOB, ENDED))
    assert first["Message-ID"] == second["Message-ID"]
    assert read(notice("begin"))["Message-ID"] != first["Message-ID"]


def test_names_cannot_add_headers_and_titles_stay_in_one_line() -> None:
    evil = over("FAILED", "1:0", slurm_name=f"x\r\nBcc: eve@evil.org {'y' * 500}")
    made = mail([notice("fail", evil)], sender="a@b", to="c@d", now=T0)
    text = made.as_bytes().decode()
    assert "\nBcc" not in text
    (subject,) = [one for one in text.splitlines() if one.startswith("Subject:")]
    assert subject.startswith("Subject: Slurm Job_id=42 Name=x  Bcc: eve@evil.org yyy")
    assert read(notice("fail", over("FAILED", "1:0", slurm_name="학습")))["Subject"].count("학습")


def test_several_events_are_a_summary_that_ends_with_a_number() -> None:
    many = [
        notice("end", msgspec.structs.replace(JOB, uid=str(one), name=f"j{one}"))
        for one in range(30)
    ]
    found = read(*many)
    assert found["Subject"] == "Unisono: 30 events of 30 jobs"
    lines = found.get_content().splitlines()
    assert lines[0] == "2023-11-14 22:13 UTC  Job team-a/j0 has ended"
    assert "and 10 more" in lines
    assert document("slack", many)["text"].endswith("and 10 more")
    generic = document("generic", many)
    assert (generic["kind"], len(generic["items"]), generic["more"]) == ("NotificationList", 20, 10)


def test_the_generic_document() -> None:
    assert document("generic", [Notice(JOB, ENDED)]) == {
        "apiVersion": "unisono.dev/v1",
        "kind": "Notification",
        "id": "u/end/m",
        "event": "end",
        "time": "2023-11-14T22:13:20Z",
        "title": "Job team-a/train has ended",
        "reason": "Job is COMPLETED (0:0)",
        "job": {
            "kind": "Job",
            "namespace": "team-a",
            "name": "train",
            "workload": "job-train-1",
            "queue": "main",
        },
        "ranSeconds": 3600,
    }


def test_slack_and_teams_see_no_links_or_mentions_of_users() -> None:
    evil = msgspec.structs.replace(SLURM, slurm_name="<!channel> [free](https://evil.org)")
    slack = document("slack", [notice("end", evil)])["text"]
    assert slack.startswith("*Slurm Job_id=42 Name=&lt;!channel&gt;")
    assert "<" not in slack
    teams = document("teams", [notice("end", evil)])
    assert "](" not in json.dumps(teams)
    (attachment,) = teams["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["type"] == "AdaptiveCard"
