"""Words for amounts of resources, the way people write them in manifests."""

from __future__ import annotations

from unisono.engine.model.names import CPU, ResourceName

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount_words(amount: int, resource: ResourceName) -> str:
    """Write an amount with its resource.

    >>> amount_words(1500, CPU)
    '1500m cpu'
    >>> amount_words(8, ResourceName("nvidia.com/gpu"))
    '8 nvidia.com/gpu'
    """
    if resource == CPU:
        whole = amount % 1000 == 0
        return f"{amount // 1000} cpu" if whole else f"{amount}m cpu"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        power = 0
        while power < len(_BINARY) - 1 and amount and amount % 1024 == 0:
            amount //= 1024
            power += 1
        return f"{amount}{_BINARY[power]} {resource}"
    return f"{amount} {resource}"
