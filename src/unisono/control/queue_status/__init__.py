"""The statuses of queues: pending and admitted workloads, usage, and whether a queue is active.

tally           counts of stored Workloads, kept up to date change by change
cluster_queue   the status of a ClusterQueue
local_queue     the status of a LocalQueue
pending_order   the order of pending workloads, where only the scheduler knows it
shares          fair shares of queues and cohorts, when the operator wants them
"""
