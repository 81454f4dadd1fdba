"""Benchmarks: programs that print numbers with their conditions. Not part of the tests."""
