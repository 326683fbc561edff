"""Volcano's kinds: jobs, groups of pods, queues, and the network as a tree of HyperNodes.

jobs              batch.volcano.sh Job: tasks that form a gang
groups            scheduling.volcano.sh PodGroup: pods that name it form a gang
queues            scheduling.volcano.sh Queue; `queue_tree` and `queue_quota` make quota of them
network_topology  topology.volcano.sh HyperNode: switches as labels of the nodes below them, and
                  how close the pods of jobs and groups must be to each other
"""
