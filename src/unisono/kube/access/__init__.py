"""Where a cluster is and how to sign in: kubeconfig, credentials, TLS."""
