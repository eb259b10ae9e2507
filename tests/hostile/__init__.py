"""Servers that mean harm, or are broken beyond what is usual: each row says what one does, and what is to come of it.

Whatever comes, a crawl ends, in bounded memory, with a status for each URL, and with no document of what was not read whole.
"""
