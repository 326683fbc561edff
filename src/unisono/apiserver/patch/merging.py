"""What applying a configuration makes of a live object, before anything is taken away.

The configuration wins where both have a value; lists with keys and sets are merged item by item.
"""

from __future__ import annotations

from typing import Any

from unisono.apiserver.patch.grain import FIELDS, LEAF, Grain, Unshareable


def merged(grain: Grain, live: Any, config: Any) -> Any:
    """Return the live value with the configuration in it; may share parts with both."""
    if grain.kind == LEAF:
        return config
    container = dict if grain.kind == FIELDS else list
    fit = all(value is None or isinstance(value, container) for value in (live, config))
    if not fit or (not live and not config):
        return config
    if grain.kind == FIELDS:
        # A null where an object was does not remove what others put into the object.
        result = dict(live or {})
        for name, value in (config or {}).items():
            if name in result:
                result[name] = merged(grain.field(name)[1], result[name], value)
            else:
                result[name] = value
        return result
    return _merged_items(grain, live or [], config or [])


def _merged_items(grain: Grain, live: list[Any], config: list[Any]) -> list[Any]:
    """Merge two lists: the items of the configuration in its order, the live ones around them."""
    wanted = {grain.text(item): item for item in config}
    there: dict[str, Any] = {}
    live_texts = [grain.text(item) for item in live]
    for text, item in zip(live_texts, live, strict=True):
        # Of an item that is there twice nothing is merged: the configuration's replaces both.
        there[text] = _TWICE if text in there else item

    result: list[Any] = []

    def take(text: str) -> None:
        before = there.get(text, _TWICE)
        item = wanted[text]
        result.append(item if before is _TWICE else merged(grain.items, before, item))

    order = list(wanted)
    shared = [text for text in order if text in there]
    next_wanted = next_shared = 0
    for text, item in zip(live_texts, live, strict=True):
        if text not in wanted:
            result.append(item)
        elif next_shared < len(shared) and text == shared[next_shared]:
            # The configuration's own items go in front of the shared one that follows them.
            while order[next_wanted] != text:
                take(order[next_wanted])
                next_wanted += 1
            take(text)
            next_wanted += 1
            next_shared += 1
        # Any other shared item is taken when its turn in the configuration comes.
    for text in order[next_wanted:]:
        take(text)
    return result


_TWICE: Any = object()


def check_items(grain: Grain, config: Any) -> None:
    """Refuse a configuration that has two items with the same key in one list."""
    if grain.kind == FIELDS and isinstance(config, dict):
        for name, value in config.items():
            if isinstance(value, (dict, list)):
                check_items(grain.field(name)[1], value)
    elif grain.kind not in (FIELDS, LEAF) and isinstance(config, list):
        seen = set()
        for item in config:
            text = grain.text(item)
            if text in seen:
                raise Unshareable(f"two items of a list have the key {text[2:]}")
            seen.add(text)
            check_items(grain.items, item)
