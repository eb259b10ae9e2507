"""A snapshot of the known URLs of a collection: what the explorer counts and selects by, since no store has an index by URL."""
