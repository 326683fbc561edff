"""All documents together: which objects are workloads, where their pods run, and one snapshot."""
