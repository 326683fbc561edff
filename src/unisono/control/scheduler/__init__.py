"""The loop around the engine: objects in, one plan at a time, the intent of it out."""
