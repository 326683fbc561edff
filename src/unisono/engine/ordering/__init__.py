"""In which order workloads are decided: heads of queues, or multifactor priority over all queues.

heads              classical order and the fair-sharing tournament of a cycle's heads
priority_order     multifactor priority as a feature of the state
multifactor_queue  the pending queue of one ClusterQueue in priority order
multifactor        priorities, limits and usage together: factors, fair_tree or classic_share,
                   limits with limit_counters and submit_slots, usage with usage_counters
accounts, membership, tres      what they are about
"""
