"""Who learns: small agents that work with every policy of `exploration`."""
