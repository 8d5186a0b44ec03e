"""The commands of the command line, a module each; heavy imports wait until one runs."""
