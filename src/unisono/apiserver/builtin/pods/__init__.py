"""Pods: defaults, validation, status, and what an update may change."""
