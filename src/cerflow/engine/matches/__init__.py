"""Makes the result for users from the match graph: lists, counts, folds, picks, numbers and shows matches."""
