"""Runtime wiring: what `unisono up` and `unisono controller` are put together from.

`cli` parses, calls and renders. Here a process gets its clock and its ids, its data folder, its
listeners, its metrics and its controllers; nothing here reads arguments or prints results.
"""

from __future__ import annotations

from unisono.engine.model.errors import UnisonoError


class AnswerIsNo(UnisonoError):
    """What was asked for is not there or not allowed; the message says why.

    Commands raise it besides `InvalidManifest` and what the client and the system raise.
    """
