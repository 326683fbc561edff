"""What an operator configures: Policy, SchedulingPolicy and Kueue's Configuration."""
