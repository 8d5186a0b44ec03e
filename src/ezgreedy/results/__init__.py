"""What came out of runs, and how sure of it we are."""
