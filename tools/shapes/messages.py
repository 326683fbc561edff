"""What a broken rule says, in our words: `messages.json`, by the text of the rule."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
FILE = Path(__file__).parent / "messages.json"
RULES = "x-kubernetes-validations"


@cache
def _messages() -> dict[str, str]:
    return dict(json.loads(FILE.read_text())) if FILE.exists() else {}


def with_messages(node: T) -> T:
    """Return a schema (or anything that holds one) with messages for its rules."""
    if isinstance(node, dict):
        made = {key: with_messages(value) for key, value in node.items()}
        if isinstance(node.get(RULES), list):
            made[RULES] = [_with_message(rule) for rule in node[RULES]]
        return made  # type: ignore[return-value]  # the same shape, rebuilt
    if isinstance(node, list):
        return [with_messages(one) for one in node]  # type: ignore[return-value]  # as above
    return node


def _with_message(rule: dict[str, str]) -> dict[str, str]:
    message = _messages().get(_key(rule["rule"]))
    return rule | ({"message": message} if message else {})


def _key(rule: str) -> str:
    return " ".join(rule.split())
