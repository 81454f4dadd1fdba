"""The running system: actors, the inbox that feeds them and the process that composes them."""
