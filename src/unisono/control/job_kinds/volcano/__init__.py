"""Volcano's Job, PodGroup and Queue: their kinds, labels and defaults."""

from __future__ import annotations

from unisono.kube.mapping import Kind

JOB = Kind("batch.volcano.sh/v1alpha1", "Job")
CRON_JOB = Kind("batch.volcano.sh/v1alpha1", "CronJob")
POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup")
FLOW = Kind("flow.volcano.sh/v1alpha1", "JobFlow")
JOB_TEMPLATE = Kind("flow.volcano.sh/v1alpha1", "JobTemplate")
COMMAND = Kind("bus.volcano.sh/v1alpha1", "Command")

JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
TASK = "volcano.sh/task-spec"
INDEX = "volcano.sh/task-index"
QUEUE_NAME = "volcano.sh/queue-name"
VERSION = "volcano.sh/job-version"
RETRIES = "volcano.sh/job-retry-count"
TEMPLATE = "volcano.sh/template-uid"
GROUP_NAME = "scheduling.k8s.io/group-name"

# On a job: the admitted Workload. A Volcano job has no field to suspend it with; one without this
# annotation gets no pods.
ADMITTED = "unisono.dev/admitted"
# On a pod that took the place of one that was lost: when that was.
LOST_AT = "unisono.dev/lost-at"
# In status.controlledResources: what is being restarted, if not everything; and the last command.
TARGET = "unisono.dev/target"
LAST_COMMAND = "unisono.dev/command"
# There, too: for how many hosts of each task the lists of hosts were written.
HOSTS = "unisono.dev/hosts"
# There, too: how many restarts in a row followed short runs, and when the last one makes its pods.
RESTARTS_IN_A_ROW = "unisono.dev/restarts-in-a-row"
RESTART_AT = "unisono.dev/restart-at"

DEFAULT_QUEUE = "default"
DEFAULT_RETRIES = 3
