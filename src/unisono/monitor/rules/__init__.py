"""Recording and alert rules as data, and the files that a Prometheus set-up needs."""
