"""The magic command ``%%cerflow`` of notebooks: a query in a cell, its matches as table and picture."""
