"""From a batch script to a gang: options, arrays, layout, and the object that is stored."""
