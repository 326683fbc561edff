"""The bridge to a real Slurm: jobs reserve whole gangs, so that two schedulers cannot disagree.

slurm_view      jobs and nodes as Slurm reports them
cluster_view    gangs, pods and nodes as Kubernetes reports them
slurm_commands  runs squeue, sinfo, scontrol, sbatch and scancel
marks           the bridge's state of a job, kept in its AdminComment
gang            a Slurm job as a gang of Kubernetes pods
decide          the actions for a job and its gang (pure)
nodes           which nodes to drain, resume and label (pure)
mismatch        where the two views differ, and the remedies (pure)
actions         what the bridge may do, as data
apply           carries actions out
hooks           answers Slurm's hooks, and reads the requests of job_submit.lua
daemon          the loop
install         what a real Slurm needs for it: the hooks, settings, and whether they are there
"""
