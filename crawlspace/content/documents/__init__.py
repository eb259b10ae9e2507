"""Reads files, such as PDF and office documents, into text. Each reader gets an open file and limits, and knows nothing of the crawl."""
