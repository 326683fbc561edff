"""Stories that `unisono demo` tells."""
