"""What state is a directory in, and how is it brought back to the last consistent one?"""
