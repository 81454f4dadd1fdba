"""Graft: what a pull request really does, who wrote it, and what the repository's rules would decide."""

__version__ = "0.1.0"
