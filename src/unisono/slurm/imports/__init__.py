"""A Slurm's configuration as ours: queues, flavors, policies, and a report of what became of it.

dump       what sacctmgr prints: accounts, users, QOS
limits     limits of accounts and QOS, TRES by TRES
turns      the SchedulingPolicy: weights, accounts, QOS, partitions
queues     nodes, flavors, the cohort, queues
report     what was mapped, approximated, dropped
whole      all of it
"""
