"""How a cache follows a kind: reflector and store (pure), and the informer that feeds them."""
