"""Which machines to buy for a gang: all that it lacks, at the lowest price, or none."""
