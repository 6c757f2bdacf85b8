"""Turns the match graph into results: lists, counts, folds, picks, numbers and shows matches."""
