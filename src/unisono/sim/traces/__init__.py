"""Readers: files of the world's traces in, one form of columns out.

swf        the Standard Workload Format of the Parallel Workloads Archive
published  Alibaba's pods (openb), replayed as they came or until the cluster is full, and jobs of
           Microsoft's Philly
mapped     any CSV, with a word for what each column means (Helios, Acme, PAI, spot)
journal    our own JSON lines, lossless
files      plain or compressed bytes, and CSV as columns
"""
