"""Link depths: URLs found nearer than before, and depths that may be wrong, which are settled at the end of a run."""
