"""One module per agent program: where it reads memory, how, and how much."""
