"""`unisono completion`: shell completion of commands, options and object names."""
