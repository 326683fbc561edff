"""HTTP/1.1 for everything that listens here: the API, the page, metrics, probes and webhooks."""
