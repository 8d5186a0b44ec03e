"""Who learns: plain objects with compiled updates, for any policy of the core."""
