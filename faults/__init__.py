"""Faults on purpose: sixteen kinds of trouble, injected into the real commands and counted."""
