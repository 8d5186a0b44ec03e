"""What makes a frame new: a density model of frames and the reward for what it did not expect."""
