"""From an admission to pods on nodes: slots, binding, repair after a lost node, restarts."""
