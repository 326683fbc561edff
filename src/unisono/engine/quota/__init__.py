"""How much everybody may use."""
