"""Facts as text: stage, reason and message of an explanation, and the description of a plan."""
