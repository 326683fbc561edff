"""Faults injected into simulated GPUs, kept as an annotation of the node.

    unisono.dev/gpu-faults: {"0": {"xid": 79, "at": 1760000000}, "3": {"hot": 30}}

The key is a device's index; `*` is every device of the node. It is visible with kubectl, survives a
restart, and needs no other way in than the API.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ANNOTATION = "unisono.dev/gpu-faults"
EVERY = "*"

# What needs a reset or a person, by NVIDIA's list of XID errors.
CRITICAL_XIDS = (46, 48, 62, 64, 74, 79, 95, 119, 120, 140)


class Fault(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What is wrong with a device; everything that is not named is well."""

    xid: int = 0  # the last error that the driver reported
    ecc: int = 0  # uncorrectable memory errors
    hot: float = 0.0  # so many degrees too hot
    slow: float = 1.0  # the part of its clock that is left
    memory: float = 0.0  # the part of its memory that is in use, instead of what the pod would use
    row_remap_failed: bool = False
    fallen_off: bool = False  # it is gone: no series, and one device less to give out
    silent: bool = False  # its exporter does not answer
    at: int = 0  # since when

    @property
    def problem(self) -> str:
        """What a node would report of it; how bad that is, others say."""
        if self.fallen_off:
            return "Xid79"
        if self.xid:
            return f"Xid{self.xid}"
        if self.ecc:
            return "UncorrectableEcc"
        return "RowRemapFailed" if self.row_remap_failed else ""


Faults = dict[str, Fault]

_read = msgspec.json.Decoder(Faults).decode


def faults_of(annotations: Mapping[str, str] | None) -> Faults:
    """Read the faults of a node's devices; none if there are none that can be read."""
    text = (annotations or {}).get(ANNOTATION)
    if not text:
        return {}
    try:
        return _read(text)
    except msgspec.MsgspecError:
        return {}


def text_of(faults: Faults) -> str | None:
    """Write them; None if there is nothing wrong, which takes the annotation away."""
    wrong = {key: one for key, one in faults.items() if one != Fault(at=one.at)}
    if not wrong:
        return None
    return msgspec.json.encode(dict(sorted(wrong.items()))).decode()


def fault_at(faults: Faults, index: int) -> Fault | None:
    """Return what is wrong with one device."""
    return faults.get(str(index)) or faults.get(EVERY)


def problem_of(faults: Faults) -> tuple[str, str]:
    """Return the reason and the message of a node's worst fault; empty if none is reported."""
    order = sorted(faults.items(), key=lambda item: (item[1].xid not in CRITICAL_XIDS, item[0]))
    for key, one in order:
        if one.problem:
            which = "every GPU" if key == EVERY else f"GPU {key}"
            return one.problem, f"{which} reports {one.problem}"
    return "", ""
