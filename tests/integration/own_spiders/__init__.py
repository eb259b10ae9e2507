"""Spiders as people write them, found by `-s SPIDER_MODULES=tests.integration.own_spiders`."""
