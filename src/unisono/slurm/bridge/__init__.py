"""The bridge to a real Slurm: one ledger of whole gangs, so that two schedulers cannot disagree.

marks         what we write into a job's AdminComment
gang          a Slurm job as a gang of Kubernetes pods
truth         what Kubernetes says: gangs, pods, nodes
dependencies  whether a held job may begin as far as others are concerned (pure)
decide        what is to be done about a job and its gang (pure)
nodes         which nodes to drain, resume and label (pure)
mismatch      where Slurm's belief and Kubernetes' truth part (pure)
remedies      what ends that (pure)
actions       what may be done, as data
apply         doing it
hooks         what Slurm asks us: may this job start?
requests      what job_submit.lua writes down for us
daemon        the loop
"""
