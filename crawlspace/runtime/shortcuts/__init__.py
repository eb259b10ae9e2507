"""Shorter ways through Scrapy for the pages of a collection, where no component of a user's own can notice the difference.

Scrapy is made for any callback, any number of items and any delay. What that takes for each response, in tasks, queues and generators
around generators, is as much Python as reading and recording a page. Wherever a page is not as most are, Scrapy's own way is taken.
"""
