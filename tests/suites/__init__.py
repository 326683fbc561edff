"""Public test suites, built from their Go modules and run against us (`make test-suites`).

Nothing of those projects is here but names of specs. What is built is kept in the user's cache.
"""
