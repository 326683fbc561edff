"""TrainJob and its runtimes, of the Kubeflow Trainer."""
