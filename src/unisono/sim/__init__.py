"""The simulator: the engine in virtual time, what it replays, and what its results mean.

trace, outcome       what goes in and what comes out, as columns
sources              traces by name: files (`traces/`) and generators
generators           traces drawn from a seed
report, comparison   comparisons and traces, for programs; policies side by side
archive, page        outcomes as files, and as one page for a browser
clusters             nodes from inventories and manifests
setup, jobs          policies and queues to simulate with; the workloads of a trace
loop                 the simulated run: events in virtual time, the engine's decisions
faults, provisioning nodes that fail, machines that are bought
what_if, gpu_counts  when a pending workload would start; a fast estimate of that
measures, fairness   an outcome in figures
cost, fragmentation  what machines cost; GPUs that a typical pod could not use
formatting           figures as people read them
random_source        random numbers, from a seed
"""
