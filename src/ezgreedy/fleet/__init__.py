"""The Ray engine: the roles of a single process, spread over many processes."""
