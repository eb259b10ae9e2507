# Imported first: it inspects the whole call stack, which took a quarter of a command's start time
# (Scrapy's `create_deprecated_class`; all importing modules are on the stack).
import scrapy.core.downloader.contextfactory  # noqa: F401
