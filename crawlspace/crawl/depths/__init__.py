"""Link depths: URLs found at a smaller depth, and depths that may be wrong, which are settled at the end of a run."""
