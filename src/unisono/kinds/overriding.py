"""`override`, as the engine has it, for everything above the engine."""

from __future__ import annotations

from unisono.engine.model.overriding import override

__all__ = ["override"]
