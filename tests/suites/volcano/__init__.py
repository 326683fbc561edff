"""Volcano's own end-to-end specs, built from its Go module."""
