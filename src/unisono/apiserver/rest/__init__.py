"""The verbs of the API over any kind: read, watch, write, delete and what hangs below a name."""
