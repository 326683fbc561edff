"""The bridge to a real Slurm: jobs reserve whole gangs, so that two schedulers cannot disagree.

slurm_view      jobs and nodes as Slurm reports them
cluster_view    gangs, pods and nodes as Kubernetes reports them
slurm_commands  runs squeue, sinfo, scontrol, sbatch and scancel
marks           the bridge's state of a job, kept in its AdminComment
gang            a Slurm job as a gang of Kubernetes pods
dependencies    whether a held job's dependencies are satisfied (pure)
decide          the actions for a job and its gang (pure)
nodes           which nodes to drain, resume and label (pure)
mismatch        where the two views differ, and the remedies (pure)
actions         what the bridge may do, as data
apply           carries actions out
hooks           answers Slurm's hooks: may this job start?
requests        what job_submit.lua writes down for the bridge
daemon          the loop
"""
