"""The simulator: the engine in virtual time, what it replays, and what its results mean.

trace, outcome       what goes in and what comes out, as columns
sources              traces by name: files (`traces/`) and generators (`generate/`)
report               comparisons and traces, for programs
clusters             nodes from inventories and manifests
setup, queue_layout  policies and queues to simulate with
loop                 the simulated run: events in virtual time, the engine's decisions
faults, provisioning nodes that fail, machines that are bought
what_if              when a pending workload would start
measures, fairness   an outcome in figures
formatting           figures as people read them
random_source        random numbers, from a seed
"""
