"""What a command may raise besides `InvalidManifest` and plain trouble."""

from __future__ import annotations

from unisono.engine.model.errors import UnisonoError


class AnswerIsNo(UnisonoError):
    """What was asked for is not there or not allowed; the message says why."""
