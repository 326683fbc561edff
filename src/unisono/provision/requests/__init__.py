"""Kueue's admission check for nodes: ProvisioningRequests, and their fulfilment."""
