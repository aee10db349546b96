"""Opening what is to be read, here and in a helper beside."""
