"""A scenario's YAML, with a name for every place in it.

A `Part` is one value of the file together with its path, so that its reader can ask for the
type that the grammar wants and a mistake names the place: `steps[2].cycle.g`. What is wrong with a
file raises `BadScenario`; what is wrong with an outcome is not this module's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml

from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import duration_ms, instant_ms


class BadScenario(Exception):
    """The file does not follow the grammar; says where, what, and what would."""


class Part:
    """A value of the file and where it stands."""

    def __init__(self, value: Any, path: str = "") -> None:
        self.value = value
        self.path = path

    def fail(self, problem: str) -> NoReturn:
        """Stop reading, naming this place."""
        raise BadScenario(f"{self.path}: {problem}" if self.path else problem)

    def __getitem__(self, key: str | int) -> Part:
        """Return a part of this part; the caller knows that it is there."""
        inner = f"{self.path}[{key}]" if isinstance(key, int) else f"{self.path}.{key}"
        return Part(self.value[key], inner.removeprefix("."))

    # --- mappings and lists ---

    def entries(self) -> Iterator[tuple[str, Part]]:
        """Yield the entries of a mapping whose keys are names that the author chose."""
        for key in self._mapping():
            yield key, self[key]

    def fields(self, *known: str) -> dict[str, Part]:
        """Return the entries of a mapping whose keys the grammar fixes."""
        for key in self._mapping():
            if key not in known:
                self[key].fail(f"unknown field; known are {', '.join(known)}")
        return dict(self.entries())

    def items(self) -> list[Part]:
        """Return the members of a list."""
        if not isinstance(self.value, list):
            self.fail(f"must be a list, not {self.value!r}")
        return [self[index] for index in range(len(self.value))]

    def names(self) -> list[str]:
        """Return a list of names; one name may stand alone."""
        if isinstance(self.value, str):
            return [self.value]
        return [item.text() for item in self.items()]

    def _mapping(self) -> dict[str, Any]:
        if not isinstance(self.value, dict):
            self.fail(f"must be a mapping, not {self.value!r}")
        for key in self.value:
            if not isinstance(key, str):
                self.fail(f"the key {key!r} must be quoted, it is not text")
        return self.value

    # --- single values ---

    def is_scalar(self) -> bool:
        """Say whether this is a single value."""
        return not isinstance(self.value, dict | list)

    def text(self) -> str:
        """Return a string; a number counts as its digits."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            self.fail(f"must be text, not {self.value!r}")
        return str(self.value)

    def one_of(self, *words: str) -> Any:
        """Return one of the words that the grammar (or the engine's own type) knows."""
        if self.value not in words:
            self.fail(f"must be one of {', '.join(words)}, not {self.value!r}")
        return self.value

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            self.fail(f"must be true or false, not {self.value!r}")
        return self.value

    def whole(self) -> int:
        """Return a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.fail(f"must be a whole number, not {self.value!r}")
        return self.value

    def milli(self) -> int:
        """Return a number in thousandths."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"must be a number, not {self.value!r}")
        return round(self.value * 1000)

    def decimals(self) -> tuple[float, int]:
        """Return a number and with how many decimals it was written: that is its precision."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.fail(f"must be a number, not {self.value!r}")
        return float(self.value), len(str(self.value).partition(".")[2].rstrip("0"))

    def milliseconds(self) -> int:
        """Return a time: seconds as a plain number, one like 5m or 1h, or a date."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.value * 1000
        try:
            text = self.text()
            return instant_ms(text) if "T" in text else duration_ms(text)
        except ValueError as error:
            self.fail(f"must be seconds, or a time like 90s, 5m or 1h: {error}")

    def amount(self, resource: str) -> int:
        """Return a quantity of a resource as the engine counts it."""
        try:
            return Quantity.from_raw(self.value).amount(resource)
        except ValueError as error:
            self.fail(str(error))


class _Loader(yaml.SafeLoader):
    """Plain YAML, but a key that stands twice is a mistake."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: list[Any] = []
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise BadScenario(f"line {key_node.start_mark.line + 1}: {key} stands twice")
        seen.append(key)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> Part:
    """Read one file, whole."""
    try:
        return Part(yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader))
    except yaml.YAMLError as error:
        raise BadScenario(f"is not YAML: {error}") from error
