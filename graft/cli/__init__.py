"""Commands: the composition roots of the local tools and of the daemon."""
