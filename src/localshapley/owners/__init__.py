"""Data owners: what each one's rows are worth."""
