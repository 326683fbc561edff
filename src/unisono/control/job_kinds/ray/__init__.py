"""RayCluster and RayJob."""
