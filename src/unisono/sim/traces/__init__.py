"""Readers: files of the world's traces in, one form of columns out.

swf        the Standard Workload Format of the Parallel Workloads Archive
openb      pods of Alibaba's GPU-sharing cluster, replayed as they came or until it is full
philly     training jobs of Microsoft's Philly cluster
mapped     any CSV, with a word for what each column means (Helios, Acme, PAI, spot)
journal    our own JSON lines, lossless
files      plain or compressed bytes, and CSV as columns
"""
