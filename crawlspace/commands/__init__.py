# First of all that the commands load: it looks at the whole call stack, which took a quarter of the time that a command needs to start
# (Scrapy's `create_deprecated_class`; the modules that import it one after the other are on the stack).
import scrapy.core.downloader.contextfactory  # noqa: F401
