"""Whole runs in compiled code, each equal to its plain twin action by action."""
