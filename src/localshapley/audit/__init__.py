"""What is wrong with a table: wrong labels, copies, odd rows, what mending them is worth, and the mended table."""
