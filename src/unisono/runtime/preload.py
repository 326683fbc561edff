"""Load, before a process serves, what it would otherwise load when first needed.

A process without free descriptors, or with its files replaced by another version, cannot load
anything any more, and an import that fails ends its task. Some of these modules take
long to load, which is why their users import them late; a server does it here, in a thread of its
own, between answering and being ready. A test looks for what is missing.
"""

from __future__ import annotations

import importlib

from unisono.kinds.expressions.formats import load_engine

_LATE = (
    # For keys of MPI jobs (`control.job_kinds.ssh_keys`).
    "cryptography.hazmat.primitives.serialization",
    "cryptography.hazmat.primitives.asymmetric.ec",
    "cryptography.hazmat.primitives.asymmetric.ed25519",
    # What the engine imports late, to break circles.
    "unisono.engine.explain.messages",
    "unisono.engine.dry_run",
    "unisono.engine.state.snapshots",
    # What else is imported late.
    "unisono.slurm.conf",
    "unisono.slurm.file_names",
    # What libraries import late: NumPy for masked arrays, Python for texts with a mark at the
    # beginning, for names of hosts and for files of packages (the web page).
    "numpy.ma",
    "encodings.idna",
    "encodings.utf_8_sig",
    "importlib.readers",
    "importlib.resources.readers",
)


def preload() -> None:
    """Load all of it; takes some tenths of a second."""
    load_engine()
    for name in _LATE:
        importlib.import_module(name)
