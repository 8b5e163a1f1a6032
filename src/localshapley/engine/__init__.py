"""Plays games: the loop, the executor that scores coalitions for everybody, its backends, and the store."""
