"""Whether all implementations of the blocks answer the same."""
