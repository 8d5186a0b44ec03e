"""Many runs: which ones a study needs, what they cost, and where they run."""
