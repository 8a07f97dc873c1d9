"""Importers for people who come from elsewhere: a path is recognised, read, and its texts become facts."""
