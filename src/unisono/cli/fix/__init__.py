"""`unisono fix`: rewrite manifests into the current spelling of their projects."""
