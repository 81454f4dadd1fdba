"""GitHub's JSON for what the simulator knows. Every function is pure over the state it is given."""
