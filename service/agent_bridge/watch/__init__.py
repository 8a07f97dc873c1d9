"""File events turned into "this project changed"."""
