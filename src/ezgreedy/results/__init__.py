"""Stored results, and runs read as plain data."""
