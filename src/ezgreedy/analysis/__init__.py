"""How soon exploration gets somewhere: first visits and cover times, sampled and exact."""
