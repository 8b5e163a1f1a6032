"""What is to be played: all stages up to the games, and a trainer for the coalitions."""
