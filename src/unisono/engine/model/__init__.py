"""The values that cross the engine's border: changes and snapshots in, plans out.

Everything here is frozen and encodes with msgspec, so a snapshot or a plan is also a file.
Quantities are integers: millicores for `cpu`, base units (bytes, devices, pods) for the rest.
"""
