"""Worlds to watch exploration in: one offline page that computes walks in the browser."""
