"""The loop under all controllers: changes in, keys queued, actions carried out one by one."""
