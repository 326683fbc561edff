"""Volcano's kinds: jobs, groups of pods, queues, and the network as a tree of HyperNodes.

jobs        batch.volcano.sh Job: tasks that form a gang
groups      scheduling.volcano.sh PodGroup: pods that name it form a gang
queues      scheduling.volcano.sh Queue: what it caps becomes quota
hypernodes  topology.volcano.sh HyperNode: switches as labels of the nodes below them
network     networkTopology of jobs and groups: how close their pods must be
kinds       what the registry lists
"""
