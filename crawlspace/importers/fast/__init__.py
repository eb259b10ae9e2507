"""FAST: the XML of its crawler."""
