"""Amounts in the one form that Kubernetes' own kinds keep them in.

The number is written without a fraction and with the largest suffix that allows it, in the family
of suffixes its author chose: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`, `1.5Gi` is
`1536Mi`. A binary amount below 1024, or with a fraction of a byte, moves to the decimal family.
"""

from __future__ import annotations

from unisono.kinds.quantity import MILLI, NANO, Quantity
from unisono.kinds.text_cache import cached_if_short

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@cached_if_short(4096)  # manifests repeat a few amounts thousands of times
def canonical(text: str, *, in_thousandths: bool) -> str:
    """Return the canonical form, rounded up to thousandths if asked; raise ValueError if none.

    >>> [canonical(text, in_thousandths=True) for text in ("1000m", "1024Mi", "0.5", "1.5Gi")]
    ['1', '1Gi', '500m', '1536Mi']
    >>> [canonical(text, in_thousandths=True) for text in ("1e3", "1000", "0", "1Ki", "1n")]
    ['1e3', '1k', '0', '1Ki', '1m']
    """
    nano = Quantity.from_raw(text).nano
    step = NANO // MILLI if in_thousandths else 1
    size = -(-abs(nano) // step) * step
    if size == 0:
        return "0"
    sign = "-" if nano < 0 else ""
    if text.endswith("i") and size >= 1024 * NANO and size % NANO == 0:
        number, suffix = _scaled(size // NANO, 1024, _BINARY)
        return f"{sign}{number}{suffix}"
    number, suffix = _scaled(size, 1000, _DECIMAL)
    if text[-1] in "0123456789" and ("e" in text or "E" in text):
        exponent = 3 * _DECIMAL.index(suffix) - 9
        return f"{sign}{number}e{exponent}" if exponent else f"{sign}{number}"
    return f"{sign}{number}{suffix}"


def _scaled(size: int, step: int, suffixes: tuple[str, ...]) -> tuple[int, str]:
    for suffix in suffixes[:-1]:
        if size % step:
            return size, suffix
        size //= step
    return size, suffixes[-1]
