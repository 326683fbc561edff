"""Outcomes as files: simulate once, look at it as often as you like.

A NumPy archive (`.npz`): every column as an array, everything else as JSON in the entry `about`.
Nothing in it is executed when it is read.
"""

from __future__ import annotations

import types
import typing
import zipfile
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from unisono.sim.outcome import Outcome
from unisono.sim.trace import BadTrace

SCHEMA = "unisono.outcome/v1"
_ABOUT = "about"
# Fields that files call otherwise, so that old and new ones are read alike.
_STORED_AS = {"run_intervals": "stretches"}

Kind = TypeVar("Kind")
Arrays = Mapping[str, NDArray[Any]]


def save_outcome(outcome: Outcome, path: Path) -> None:
    """Write an outcome to a file whose name ends in `.npz`."""
    arrays: dict[str, NDArray[Any]] = {}
    about: dict[str, Any] = {"schema": SCHEMA}
    _pack(outcome, "", arrays, about)
    packed = np.frombuffer(msgspec.json.encode(about), np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays, **{_ABOUT: packed})


def load_outcome(path: Path) -> Outcome:
    """Read an outcome."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = msgspec.json.decode(arrays.pop(_ABOUT).tobytes(), type=dict[str, Any])
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        message = "is not the outcome of a simulation; `unisono sim run --save DIR` writes one"
        raise BadTrace(str(path), message) from error
    if about.get("schema") != SCHEMA:
        raise BadTrace(
            str(path), f"the schema is {about.get('schema')}; this version reads {SCHEMA}"
        )
    try:
        return _unpack(Outcome, "", arrays, about)
    except (KeyError, msgspec.ValidationError) as error:
        raise BadTrace(str(path), f"lacks {error}") from error


def _pack(
    value: object, prefix: str, arrays: dict[str, NDArray[Any]], about: dict[str, Any]
) -> None:
    assert is_dataclass(value)
    for field in fields(value):
        part = getattr(value, field.name)
        name = f"{prefix}{_STORED_AS.get(field.name, field.name)}"
        if isinstance(part, np.ndarray):
            arrays[name] = part
        elif is_dataclass(part):
            about[name] = True  # it is there; its fields follow
            _pack(part, f"{name}.", arrays, about)
        else:
            about[name] = part


def _unpack(kind: type[Kind], prefix: str, arrays: Arrays, about: Mapping[str, object]) -> Kind:
    hints = typing.get_type_hints(kind)
    found: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # the kinds of outcome.py, dataclasses all
        name = f"{prefix}{_STORED_AS.get(field.name, field.name)}"
        hint = _without_none(hints[field.name])
        if name not in arrays and name not in about and field.default is not MISSING:
            continue  # written before there was such a thing
        if name in arrays:
            found[field.name] = arrays[name]
        elif about[name] is None:
            found[field.name] = None
        elif isinstance(hint, type) and is_dataclass(hint):
            found[field.name] = _unpack(hint, f"{name}.", arrays, about)
        else:
            found[field.name] = msgspec.convert(about[name], hint)
    return kind(**found)


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        return next(one for one in typing.get_args(hint) if one is not type(None))
    return hint
