"""batch/v1 Job."""
