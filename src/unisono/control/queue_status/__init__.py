"""The statuses of queues: pending and admitted workloads, usage, and whether a queue is active.

tally           counts of stored Workloads, kept up to date change by change
cluster_queue   the status of a ClusterQueue; its pending order, where only the scheduler knows it;
                fair shares of queues and cohorts, when the operator wants them
local_queue     the status of a LocalQueue
"""
