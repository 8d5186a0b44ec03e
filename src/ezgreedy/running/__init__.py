"""What every training run needs to be stopped at any moment and to go on as if it had not been."""
