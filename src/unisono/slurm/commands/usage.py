"""What `--help` of Slurm's programs prints: their options with a short explanation each.

A block of options per program: lines `long=VALUE  explanation` below titles that end in a colon.
Short forms come from the program's own table of options. What that table knows and no line explains
is listed at the end: it is accepted, so that scripts run unchanged, and has no effect.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from unisono.slurm.getopt import Option

_WIDTH = 80
_COLUMN = 34
_MARGIN = "  "

_CLUSTER = """
Which cluster:
data-dir=DIR  the instance of `unisono up` in this folder
kubeconfig=FILE  the cluster of this kubeconfig
context=NAME  the context of the kubeconfig

Help:
version  print the version of Slurm that this follows
help  print this
"""

USAGES = {
    "sbatch": "sbatch [OPTIONS...] [SCRIPT [ARGUMENT...]]",
    "squeue": "squeue [OPTIONS...]",
    "scancel": "scancel [OPTIONS...] [JOB_ID[_TASK_ID]...]",
    "sinfo": "sinfo [OPTIONS...]",
    "scontrol": "scontrol [OPTIONS...] COMMAND [ARGUMENT...]",
    "sprio": "sprio [OPTIONS...]",
    "sshare": "sshare [OPTIONS...]",
    "sacct": "sacct [OPTIONS...]",
    "sdiag": "sdiag [OPTIONS...]",
    "sreport": "sreport [OPTIONS...] REPORT [start=TIME] [end=TIME]",
}

_ABOUT = {
    "sbatch": "Options also come from #SBATCH lines of the script and from SBATCH_* variables; the "
    "command line wins.",
    "scontrol": """
Commands:
show job|node|partition|step|config|reservation [NAME]  print what is known about it
show hostnames LIST, show hostlist NAMES  expand or fold a list of nodes
hold, uhold, release JOB_ID...  keep jobs from starting, and let them start again
requeue, requeuehold JOB_ID...  stop jobs and queue them again, held or not
update JobId=ID KEY=VALUE...  change a job: TimeLimit, StartTime, Partition, Account, QOS, Nice, \
Priority, JobName, Comment, Deadline, ArrayTaskThrottle
update NodeName=NAME State=DRAIN|RESUME Reason=TEXT  take nodes out of use, and back
write batch_script JOB_ID [FILE]  save the script of a job
ping, version  ask whether the cluster answers; print the version
""",
    "sreport": """
Reports:
cluster utilization  allocated, down and idle time of the cluster
cluster AccountUtilizationByUser  usage by account and user
user TopUsage  the users with the most usage
""",
}

_OPTIONS = {
    "sbatch": """
What to run:
wrap=COMMAND  run a command instead of a script
array=INDEXES  submit a job array, as in 0-15 or 1-9%2 (two at a time)
job-name=NAME  the name of the job
chdir=DIR  the working directory
export[=NAMES]  the variables that the job gets: ALL, NONE, or NAME[=VALUE],...
input=FILE  read standard input from this file
output=FILE  write standard output there (default: slurm-%j.out)
error=FILE  write standard error there (default: as --output)
open-mode=append|truncate  what happens to output files of earlier runs
container-image=IMAGE  run in a container of this image
container-mounts=LIST  directories of the node to mount there
container-workdir=DIR  the working directory in the container

Nodes, CPUs and memory:
nodes=N[-M]  how many nodes
ntasks=N  how many tasks in all
ntasks-per-node=N  how many tasks on each node
cpus-per-task=N  CPUs of each task
mincpus=N  CPUs of each node at least
mem=SIZE  memory of each node, as in 64G
mem-per-cpu=SIZE  memory for each CPU
mem-per-gpu=SIZE  memory for each GPU
exclusive  whole nodes
constraint=LIST  only nodes with these features
prefer=LIST  rather nodes with these features
nodelist=NODES  these nodes, as in gpu[1-4]
exclude=NODES  not these nodes

GPUs:
gpus=[TYPE:]N  GPUs in all
gpus-per-node=[TYPE:]N  GPUs of each node
gpus-per-task=[TYPE:]N  GPUs of each task
ntasks-per-gpu=N  tasks for each GPU
cpus-per-gpu=N  CPUs for each GPU
gres=gpu:[TYPE:]N  GPUs of each node

Queue and priority:
partition=NAME,...  the partition; of several, the one where the job starts first
account=NAME  the account to charge
qos=NAME  the quality of service
nice[=N]  lower the priority by so much
priority=N  set the priority
hold  submit held; `scontrol release` lets it start

Time:
time=TIME  the time limit: minutes, HH:MM:SS or D-HH:MM:SS
time-min=TIME  accept a shorter limit, if the job starts earlier with it
begin=TIME  do not start before this time
deadline=TIME  give up if the job cannot end by this time

Life of the job:
dependency=LIST  wait for other jobs, as in afterok:17:18
kill-on-invalid-dep=yes|no  what happens to a job whose dependency can never be met
requeue  queue the job again if its nodes fail
no-requeue  do not queue it again
signal=[B:]NAME[@SECONDS]  send this signal so long before the time limit
comment=TEXT  a note, as squeue and scontrol show it

This call:
parsable  print the number of the job alone
clusters=NAME  with --parsable, print the name of the cluster, too
quiet  print nothing but errors
wait  return when the job has ended, with its exit code
test-only  submit nothing; say when the job would start
lenient  ignore unknown options of the script, with a warning
namespace=NAME  the namespace that gets the job
""",
    "squeue": """
Jobs to list (default: pending and running ones):
jobs[=ID,...]  only jobs with these numbers
me  only jobs of yours
user=NAME,...  only jobs of these users
account=NAME,...  only jobs of these accounts
partition=NAME,...  only jobs of these partitions
qos=NAME,...  only jobs with these qualities of service
name=NAME,...  only jobs with these names
nodelist=NODES  only jobs on these nodes
namespace=NAME,...  only jobs of these namespaces
states=STATE,...  only jobs in these states, as in PD,R or all
start  only pending jobs, with their estimated starts

Output:
long  more columns
format=COLUMNS  columns by letter, as in "%i %j %T %R"
Format=COLUMNS  columns by name, as in JobID,Name,State
sort=COLUMNS  sort by these letters, as in P,-p
array  every task of a job array on a line of its own
array-unique  as --array
steps[=ID,...]  list steps of running jobs instead of jobs
noheader  without the heading
json  as JSON
yaml  as YAML
iterate=SECONDS  list them again and again
""",
    "scancel": """
Jobs to stop (all filters that are given must match):
me  jobs of yours
user=NAME,...  jobs of these users
account=NAME,...  jobs of these accounts
partition=NAME,...  jobs of these partitions
qos=NAME,...  jobs with these qualities of service
name=NAME,...  jobs with these names
jobname=NAME,...  as --name
state=STATE,...  jobs in these states, as in PENDING

How:
signal=KILL|TERM  the signal; pods take no others
""",
    "sinfo": """
Nodes to list:
nodes=NODES  only these nodes
partition=NAME,...  only nodes of these partitions
states=STATE,...  only nodes in these states, as in idle,mix
dead  only nodes that do not respond

Output (default: a line for each partition and state):
Node  a line for each node
summarize  a line for each partition, with counts of nodes
list-reasons  why nodes are down or drained
long  more columns
format=COLUMNS  columns by letter, as in "%P %D %t"
Format=COLUMNS  columns by name, as in NodeList,StateLong
noheader  without the heading
json  as JSON
""",
    "scontrol": """
Output:
oneliner  each record on one line
""",
    "sprio": """
Jobs to list (default: all that are pending):
jobs=ID,...  only jobs with these numbers
user=NAME,...  only jobs of these users
partition=NAME,...  only jobs of these partitions

Output:
long  every part of the priority
norm  parts between 0 and 1, without their weights
weights  the configured weights instead of jobs
format=COLUMNS  columns by letter
noheader  without the heading
""",
    "sshare": """
Associations to list (default: yours):
all  those of all users
users=NAME,...  those of these users
accounts=NAME,...  those of these accounts
Users  users only, without the lines of accounts

Output:
long  more columns
format=COLUMNS  columns by name, as in Account,User,FairShare
noheader  without the heading
parsable  columns divided by |, with one at the end
parsable2  columns divided by |
""",
    "sacct": """
Jobs to list (default: yours since midnight):
jobs=ID,...  only jobs with these numbers
allusers  jobs of all users
user=NAME,...  jobs of these users
uid=UID,...  jobs of users with these numbers
accounts=NAME,...  only jobs of these accounts
partition=NAME,...  only jobs of these partitions
qos=NAME,...  only jobs with these qualities of service
name=NAME,...  only jobs with these names
state=STATE,...  only jobs in these states
starttime=TIME  from this time on
endtime=TIME  until this time
allocations  jobs alone, without their steps

Output:
brief  number, state and exit code
long  every usual column
format=COLUMNS  columns by name, as in JobID,State,Elapsed
helpformat  list the names of columns
noheader  without the heading
parsable  columns divided by |, with one at the end
parsable2  columns divided by |
delimiter=TEXT  divide columns by this
json  as JSON
""",
    "sdiag": """
Output:
json  as JSON
""",
    "sreport": """
Output:
tres=cpu|gres/gpu  what is counted (default: cpu)
noheader  without the heading
parsable  columns divided by |, with one at the end
parsable2  columns divided by |
""",
}


def help_of(program: str, known: Mapping[str, Option]) -> str:
    """Return the help of a program whose options are these."""
    blocks = f"{_OPTIONS[program].rstrip()}\n{_CLUSTER}"
    explained: set[str] = set()
    lines = [f"Usage: {USAGES[program]}", *_about(_ABOUT.get(program, ""))]
    for line in blocks.splitlines():
        left, _, right = line.partition("  ")
        if not right:
            lines.append(line)
            continue
        long = left.partition("=")[0].removesuffix("[")
        option = known[f"--{long}"]
        explained.add(long)
        short = f"-{option.short}," if option.short else ""
        lines += _row(f"{short:<3} --{left}", right)
    silent = sorted({option.long for option in known.values()} - explained - {"usage"})
    if silent:
        names = ", ".join(f"--{long}" for long in silent)
        lines += ["", *_filled(f"Accepted, and without effect: {names}.")]
    return "\n".join(lines) + "\n"


def _about(text: str) -> Iterator[str]:
    """Yield what stands between usage and options: a sentence, or rows below titles."""
    for line in text.splitlines():
        left, _, right = line.partition("  ")
        yield from _row(left, right) if right else _filled(line) if line else ("",)


def _row(left: str, right: str) -> Iterator[str]:
    """Yield an option and its explanation, side by side where the option is short enough."""
    start = f"{_MARGIN}{left}"
    if len(start) >= _COLUMN:
        yield start
        start = ""
    yield from textwrap.wrap(
        right, _WIDTH, initial_indent=f"{start:<{_COLUMN}}", subsequent_indent=" " * _COLUMN
    )


def _filled(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False)
