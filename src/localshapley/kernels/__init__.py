"""Compiled loops: free functions over plain arrays, numpy and numba only."""
