"""Which number stands for which field, one module per area, in the notation of `messages`."""
