"""Operators: what makes pods of jobs where no upstream operator does (embedded mode)."""
