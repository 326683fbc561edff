"""Machines that are nodes: held, in use, idle, drained, given back."""
