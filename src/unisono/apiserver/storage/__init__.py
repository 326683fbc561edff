"""Objects on SQLite: one writer, group commit, a history to watch; see `store`."""
