"""Which workload used which GPUs, when, and at what price: an account that survives restarts.

rows.py         what is written down
store.py        the SQLite file
recorder.py     from changes in the cluster to rows
accounts.py     the account of a period: its GPU-seconds, each in exactly one state
settlement.py   from rows to an account
attempts.py     admissions of a workload, and what was lost or held for them
queue_usage.py  quota, usage and waits by queue
utilization.py  how busy GPUs were, from a Prometheus
"""
