"""Has Scrapy's components handle responses from the archive, as if they had just been downloaded."""
