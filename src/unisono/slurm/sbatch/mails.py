"""`--mail-type` and `--mail-user` as annotations of a job (`kinds.notifying` reads them).

    NONE · BEGIN · END · FAIL · REQUEUE · INVALID_DEPEND · STAGE_OUT
    ALL: all of these, and delay
    TIME_LIMIT · TIME_LIMIT_90 · TIME_LIMIT_80 · TIME_LIMIT_50
    ARRAY_TASKS: each task of an array instead of the whole

A word of ours stands for each; for STAGE_OUT none, as there are no burst buffers here.
"""

from __future__ import annotations

from collections.abc import Mapping

_WORDS = {
    "NONE": "none",
    "BEGIN": "begin",
    "END": "end",
    "FAIL": "fail",
    "REQUEUE": "preempt",
    "ALL": "all",
    "STAGE_OUT": "",
    "TIME_LIMIT": "time-limit",
    "TIME_LIMIT_90": "time-limit-90",
    "TIME_LIMIT_80": "time-limit-80",
    "TIME_LIMIT_50": "time-limit-50",
    "ARRAY_TASKS": "array-tasks",
    "INVALID_DEPEND": "invalid-dependency",
}


def mail_annotations(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return what a job says about mails; None if a word is not one of Slurm's.

    >>> mail_annotations({"mail-type": "BEGIN,TIME_LIMIT_80", "mail-user": "ada@example.org"})
    {'unisono.dev/notify': 'begin,time-limit-80', 'unisono.dev/notify-to': 'ada@example.org'}
    >>> mail_annotations({"mail-user": "ada"}), mail_annotations({"mail-type": "SUPPER"})
    ({}, None)
    """
    types = [one.strip().upper() for one in options.get("mail-type", "").split(",")]
    types = [one for one in types if one]
    if any(one not in _WORDS for one in types):
        return None
    words = [_WORDS[one] for one in types if _WORDS[one]]
    if not words or "none" in words:
        return {}
    made = {"unisono.dev/notify": ",".join(words)}
    if options.get("mail-user"):
        made["unisono.dev/notify-to"] = options["mail-user"]
    return made
