"""What the user gave, checked and brought to one form: rows, labels, folds, models, graphs, tables in files."""
