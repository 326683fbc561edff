"""Gangs of pods without a job of ours: Kueue's pod groups, PodGroups, single pods."""
