"""Who used which GPUs, when, and at what price: an account that survives restarts.

rows.py       what is written down
store.py      the SQLite file
keeper.py     from what happens in the cluster to rows
periods.py    from rows to the seconds of a period, each in exactly one state
"""
