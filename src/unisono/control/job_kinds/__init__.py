"""The kinds of jobs, one package each: an adapter for the queue, and the operator that runs it."""
