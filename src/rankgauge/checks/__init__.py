"""What is wrong with judgments, runs and texts, what it does to the numbers, and what mends it."""
