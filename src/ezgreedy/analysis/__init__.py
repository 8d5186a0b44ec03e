"""How soon does exploration reach states? First visits and cover times, sampled and exact."""
