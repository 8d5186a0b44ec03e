"""Summaries in, a page and a document out; nothing here runs an experiment."""
