"""The pilot: is Graft right, and does it save review time?

Pure values and rules; SQL lives in `graft.store`, requests in `graft.github`, commands in `graft.cli`. Every
number is a `Figure`: with its definition, its sample size and its interval, or “not enough data”.
"""
