"""What is learned: network parts and optimisation that several agents share. Needs torch."""
