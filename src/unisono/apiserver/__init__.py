"""The embedded Kubernetes-compatible API: storage, REST, watch, tables, OpenAPI, admission."""
