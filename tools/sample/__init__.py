"""A cluster on paper, for pictures, benchmarks and tests: objects of the API, and a past."""
