"""One module for each figure or table of the paper, and what runs them."""
