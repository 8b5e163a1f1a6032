"""Tables in files: read, understood cell by cell, and written."""
