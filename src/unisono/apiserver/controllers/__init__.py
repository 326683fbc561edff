"""What follows from stored changes: garbage collection, event expiry, budgets, custom resources."""
