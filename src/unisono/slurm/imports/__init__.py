"""Imports a Slurm configuration: queues, flavors, policies, and a report about every key.

sacctmgr           what sacctmgr prints: accounts, users, QOS
scheduling_policy  the SchedulingPolicy: weights, accounts, QOS, partitions, limits
queues             nodes, flavors, the cohort, queues
report             what was mapped, approximated, dropped
convert            all of it
"""
