"""How a run's state is saved: atomic, verified, without pickle, and cheap for large rings."""
