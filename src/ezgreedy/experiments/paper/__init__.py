"""What the paper shows at small scale: one module per figure, table or claim."""
