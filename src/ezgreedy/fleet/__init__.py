"""The Ray engine: the same roles as in one process, spread over many."""
