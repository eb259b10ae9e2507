"""Processes of their own that a crawl starts."""
