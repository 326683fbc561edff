"""PyTorchJob, TFJob, XGBoostJob, JAXJob and MPIJob."""
