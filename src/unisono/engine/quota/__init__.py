"""Quota: eligible flavors, flavor assignment, dominant shares."""
