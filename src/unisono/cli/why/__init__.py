"""`unisono why`: read a workload and its surroundings, work out the answer, print it."""
