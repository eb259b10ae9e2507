"""When known pages are fetched again: by their age, in cycles, by a schedule."""
