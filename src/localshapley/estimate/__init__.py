"""From scores to values: sums over all subsets, and estimates from some of them with their errors."""
