"""What the user gave, checked and converted to one form: rows, labels, folds, models, graphs, tables in files."""
