"""Rows, labels, folds and indexes as the user gave them, checked and in one form; rows that lie in chunks."""
