"""The index: all SQL of the program but for the copies of vendors' databases."""
