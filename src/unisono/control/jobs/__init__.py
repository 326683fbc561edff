"""Jobs of every kind: suspended until they are admitted, unsuspended then."""
