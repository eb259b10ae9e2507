# The servers are ours, so there is no need to wait between requests.
DOWNLOAD_DELAY = 0
DOWNLOAD_TIMEOUT = 5
RETRY_TIMES = 1
CRAWLSPACE_RETRY_WAIT = "1s"

# Limits, small enough for the intranet to reach each of them.
DEPTH_LIMIT = 6
URLLENGTH_LIMIT = 200
CRAWLSPACE_MAX_PATH_DEPTH = 5
CRAWLSPACE_MAX_REPEATED_SEGMENTS = 3
REDIRECT_MAX_TIMES = 3
