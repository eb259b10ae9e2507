"""Configurations of other crawlers, translated into the files of a collection."""
