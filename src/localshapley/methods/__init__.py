"""Ways to compute values."""
