"""Files in a crawl: how they wait to be read, and what becomes of those that cannot be."""
