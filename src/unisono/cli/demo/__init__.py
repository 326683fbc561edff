"""`unisono demo`: guided stories on throw-away clusters."""
