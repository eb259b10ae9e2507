"""Spiders and components as tutorials have them, found by `-s SPIDER_MODULES=tests.integration.tutorials`."""
