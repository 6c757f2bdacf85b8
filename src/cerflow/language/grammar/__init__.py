"""The grammars, the trees made of what they read, and the errors of texts that they refuse."""
