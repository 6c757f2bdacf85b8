"""What is said about formulas before they are compiled: facts, an algebra of conditions, rewritings."""
