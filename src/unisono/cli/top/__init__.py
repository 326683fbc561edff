"""`unisono top`: a screen of GPUs, queues and workloads that refreshes."""
