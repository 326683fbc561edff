"""How a request gets to an API: transport, priority lanes, retries."""
