"""`unisono decide`: a dry run of the engine on manifests."""
