"""Programs that try to break Graft: faults, endurance, hostile input. `make chaos`, `make soak`, `make fuzz`."""
