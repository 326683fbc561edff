"""`unisono install`: print, compare or apply what `unisono controller` needs on a cluster."""
