"""The canonical store: facts, their index, search. Knows no harness."""
