"""One module for each framework; the core imports none of them."""
