"""Public fakes for tests of Graft and of programs built on it: a model that says what it is told to."""
