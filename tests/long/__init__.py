"""Checks that take too long for `make test`: kills at random moments, outages, random histories. `make test-long` runs them."""
