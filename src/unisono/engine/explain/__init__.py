"""Facts in words: stage, reason and message of an explanation, and the story of a plan."""
