"""`unisono plan`: the pending workloads in order, with the start and the purchases of each."""
