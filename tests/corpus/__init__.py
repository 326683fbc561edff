"""Manifests of other projects: what becomes of each on a cluster that has what it asks for."""
