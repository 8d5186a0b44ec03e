"""Results in, figures out; nothing here runs an experiment."""
