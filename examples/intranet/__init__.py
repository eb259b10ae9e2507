"""A small company's intranet on loopback addresses, with everything in it that a crawler can stumble over.

`python -m examples.intranet.demo` crawls it and shows what came of each page;
`expected.py` says what must come of each page, and an integration test holds the crawler to it.
"""
