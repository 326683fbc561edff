"""Addresses that are about the API and not about objects: discovery, OpenAPI, health, metrics."""
