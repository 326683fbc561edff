"""The health of nodes and gangs: quarantine, stragglers, hangs, and gangs that leave a node."""
