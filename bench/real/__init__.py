"""Our controllers on a real etcd and kube-apiserver: admissions, gangs, restarts."""
