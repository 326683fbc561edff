"""Who has to leave, and for whom."""
