"""Unisono: one scheduler for shared GPU training clusters.

Importing the package costs next to nothing; import what you need from its subpackages.
"""

__version__ = "0.1.0"
