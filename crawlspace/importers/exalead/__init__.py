"""The crawl configuration of Exalead CloudView as collections of ours."""
