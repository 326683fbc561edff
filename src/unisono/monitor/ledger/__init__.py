"""Who used which GPUs, when, and at what price: an account that survives restarts.

rows.py       what is written down
store.py      the SQLite file
keeper.py     from what happens in the cluster to rows
periods.py    the account of a period: its seconds, each in exactly one state
settling.py   from rows to that; stretches.py, sweeping.py and attempts.py are parts of it
"""
