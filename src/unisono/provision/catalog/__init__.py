"""Instance types, the nodes made of them, and what they cost."""
