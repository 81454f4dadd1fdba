"""Rows and the SQL that reads and writes them, one module per aggregate. SQL lives here and nowhere else.

Functions take an open connection, so that a caller decides what is one transaction. They return frozen values
and raise asyncpg's errors, plus the few named in their docstrings.
"""
