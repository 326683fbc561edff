"""The simulator: the engine in virtual time, what it replays, and what its results mean.

trace, outcome       what goes in and what comes out, as columns
sources              traces by name: files (`traces/`) and generators (`generate/`)
summary              what a trace holds
clusters             nodes from inventories and manifests
measures, fairness   what an outcome is worth
form                 figures as people read them
dice                 chance, from a seed
"""
