"""The health of nodes: what is wrong with one, and how long it is given nothing."""
