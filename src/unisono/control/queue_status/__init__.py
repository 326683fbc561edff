"""What queues say about themselves: who waits, who runs, how much is used, and whether it is open.

tally           counts of stored Workloads, kept up to date change by change
cluster_queue   the status of a ClusterQueue
local_queue     the status of a LocalQueue
pending_order   the order of pending workloads, where only the scheduler knows it
shares          fair shares of queues and cohorts, when the operator wants them
"""
