"""Kinds of jobs by declaration: objects of WorkloadKind, and what makes controllers of them."""
