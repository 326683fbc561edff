"""Jobs of every kind, held back until they are admitted and let go when they are."""
