"""What makes a frame new? A density model of frames, and rewards for unexpected ones."""
