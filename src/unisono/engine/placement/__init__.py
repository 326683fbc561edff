"""Where the pods of a gang go: all of them, on real nodes, or nowhere."""
