"""Preemption: candidates, victims by priority or by fair share, reprieve."""
