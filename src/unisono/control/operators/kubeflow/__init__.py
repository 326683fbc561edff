"""Jobs of kubeflow.org: PyTorchJob, MPIJob and their kin, which are all made alike (jobs §6)."""
