"""The controllers: each reads one view of the cluster and writes small, repeatable steps.

view, manifests         the objects of the cluster as far as they are known
controller, actions     what a controller is, and what it may do to the API
reconciling/            the loop: changes in, keys queued, actions carried out one by one
assembly                all controllers of a mode, put together; rbac says what each may write
jobs/, job_kinds/       a job becomes a Workload; one package per kind of job
pod_gangs/              pods without a job of ours become a Workload
scheduler/              the controller around the engine: decides and writes admissions
admission/              what a Workload's status records of its admission
gangs/                  brings the pods of an admitted Workload to their nodes, repairs, restarts
health/, nodes          failed nodes, hanging gangs, stragglers
queue_status/           the statuses of queues
"""
