"""`unisono sim`: simulate traces and clusters in virtual time."""
