"""Files of a crawl, such as PDF and office documents: kept on disk while they come, read by other processes, and then taken as pages."""
