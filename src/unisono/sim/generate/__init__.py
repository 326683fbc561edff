"""Generators: traces drawn from a seed, all columns at once.

lublin       rigid jobs of a parallel machine, after Lublin and Feitelson
gpu          training jobs of a shared GPU cluster
kueue_perf   the load of Kueue's own scheduler test
arrivals     when jobs come: gaps bent by the hour of the day, and what people request
"""
