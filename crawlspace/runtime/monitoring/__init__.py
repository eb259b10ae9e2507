"""Metrics of crawls and stores for Prometheus."""
