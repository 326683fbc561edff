"""`unisono top`: what is read, the screen made of it, keys, and the terminal."""
