"""The picture of the cluster that decisions are made from."""
