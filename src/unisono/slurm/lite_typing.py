"""`NamedTuple`, `Any` and JSON without `typing`, for short-lived programs.

`sbatch` takes 25 ms of processor time with it, and 32 ms with `typing` and the named tuples made
there; `squeue`, which loads more, 44 and 46 ms (medians of 24 calls in turns, Python 3.11). Type
checkers see the real ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

__all__ = ["TYPE_CHECKING", "Any", "Json", "NamedTuple", "ReadOnlyJson"]

TYPE_CHECKING = False  # as in `typing`: true for type checkers
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:
    Any = object

    class NamedTuple(tuple):
        """A tuple whose places have the names, and perhaps the defaults, of a class's fields."""

        def __init_subclass__(cls) -> None:
            cls._fields = cls.__match_args__ = tuple(cls.__annotations__)
            own = vars(cls)
            cls._defaults = {name: own[name] for name in cls._fields if name in own}
            for place, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(place)))

        def __new__(cls, *values, **named):
            """Take values by their places or names."""
            for name in cls._fields[len(values) :]:
                if name in named:
                    values = (*values, named.pop(name))
                elif name in cls._defaults:
                    values = (*values, cls._defaults[name])
                else:
                    raise TypeError(f"{cls.__name__} needs {name}")
            if named or len(values) > len(cls._fields):
                raise TypeError(f"{cls.__name__} has no place for {[*named] or values[-1]}")
            return tuple.__new__(cls, values)

        def __repr__(self) -> str:
            pairs = zip(self._fields, self, strict=True)
            return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in pairs)})"

        def _replace(self, **named):
            return type(self)(**{**dict(zip(self._fields, self, strict=True)), **named})


# Objects of the API, and what Slurm prints as JSON. There is no typed view of a SlurmJob: squeue
# reads ten thousand of them in a tenth of a second.
Json = dict[str, Any]
ReadOnlyJson = Mapping[str, Any]
