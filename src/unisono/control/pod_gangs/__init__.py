"""Gangs of pods that nobody but their author made: Kueue's groups, PodGroups, single pods."""
