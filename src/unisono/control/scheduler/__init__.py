"""The controller around the engine: objects in, one plan at a time, status patches out."""
