"""What a Workload's status records of its admission: quota, nodes, checks, machines, waits."""
