"""Measurements of the crawler beside others, and checks too long for the tests. `python -m benchmarks.run` runs them."""
