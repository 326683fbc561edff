"""`karpenter.sh`: NodePools and NodeOverlays, from which nodes are provisioned."""
