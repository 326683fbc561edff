"""Changes to a YAML text that leave the rest of it as it was written: order, comments, style.

`edited` compares a document with what it should be and changes only the places that differ: keys
that are called otherwise, values, keys that come and go. What is too different is written anew from
its key on. The caller reads the result again; where it is not what it should be, the whole
document is to be written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from unisono.cli.objects import dump


class Edit(NamedTuple):
    """Other text for a stretch of it."""

    start: int
    end: int
    text: str


def edited(text: str, old: Any, new: Any) -> str:
    """Return the text of one document that says `old`, saying `new`."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None:
        return text
    for edit in sorted(_differences(node, old, new), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _differences(node: yaml.Node, old: Any, new: Any) -> Iterator[Edit]:
    if old == new:
        return
    if isinstance(node, yaml.MappingNode) and isinstance(old, dict) and isinstance(new, dict):
        yield from _in_mapping(node, old, new)
    elif (
        isinstance(node, yaml.SequenceNode)
        and isinstance(old, list)
        and isinstance(new, list)
        and len(old) == len(new)
    ):
        for child, before, after in zip(node.value, old, new, strict=True):
            yield from _differences(child, before, after)
    else:
        yield _anew(node, new)


def _in_mapping(node: yaml.MappingNode, old: Any, new: Any) -> Iterator[Edit]:
    gone = [key for key in old if key not in new]
    came = [key for key in new if key not in old]
    renamed = {
        before: after
        for before in gone
        for after in came
        if old[before] == new[after] and _are_alone(old[before], old, new)
    }
    pairs = [(str(key.value), key, value) for key, value in node.value]
    for at, (name, key, value) in enumerate(pairs):
        if name in renamed:
            yield Edit(key.start_mark.index, key.end_mark.index, renamed[name])
        elif name in gone:
            following = pairs[at + 1][1].start_mark.index if at + 1 < len(pairs) else None
            yield _without(node, key, value, following)
        else:
            yield from _differences(value, old[name], new[name])
    added = {key: new[key] for key in came if key not in renamed.values()}
    if added and pairs:
        yield _inserted(node, pairs[0][1], added)


def _are_alone(value: Any, old: Any, new: Any) -> bool:
    """Say whether a value is there once before and once after: then it only has another name."""
    return list(old.values()).count(value) == list(new.values()).count(value) == 1


def _without(
    node: yaml.MappingNode, key: yaml.Node, value: yaml.Node, following: int | None
) -> Edit:
    """Take a key away, with the rest of its lines; or up to the next one, if both share a line."""
    text, start = key.start_mark.buffer or "", key.start_mark.index
    begins = start - key.start_mark.column
    if node.flow_style or text[begins:start].strip():
        return Edit(start, _end(value) if following is None else following, "")
    ends = text.find("\n", _end(value))
    return Edit(begins, len(text.rstrip("\0")) if ends < 0 else ends + 1, "")


def _end(node: yaml.Node) -> int:
    """Return where the text of a node ends: a block says it does where the next one begins."""
    if isinstance(node, yaml.MappingNode) and node.value and not node.flow_style:
        return _end(node.value[-1][1])
    if isinstance(node, yaml.SequenceNode) and node.value and not node.flow_style:
        return _end(node.value[-1])
    text = (node.start_mark.buffer or "")[node.start_mark.index : node.end_mark.index]
    return node.start_mark.index + len(text.rstrip("\0 \n"))


def _inserted(node: yaml.MappingNode, first: yaml.Node, added: dict[str, Any]) -> Edit:
    start = first.start_mark.index
    if node.flow_style:
        return Edit(start, start, "".join(f"{key}: {_inline(one)}, " for key, one in added.items()))
    margin = " " * first.start_mark.column
    lines = dump(added, "yaml").splitlines()
    return Edit(start, start, "".join(f"{line}\n{margin}" for line in lines))


def _anew(node: yaml.Node, value: Any) -> Edit:
    """Write a value anew: on one line where the old one was, else in the same column."""
    start = node.start_mark.index
    is_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    if not is_block or not isinstance(value, dict | list):
        return Edit(start, _end(node), _inline(value))
    margin = "\n" + " " * node.start_mark.column
    return Edit(start, _end(node), margin.join(dump(value, "yaml").splitlines()))


def _inline(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.strip().removesuffix("\n...").strip()
