"""Runtime wiring: what `unisono up` and `unisono controller` are put together from.

`cli` parses, calls and renders. Here a process gets its clock and its ids, its data folder, its
listeners, its metrics and its controllers; nothing here reads arguments or prints results.
"""
