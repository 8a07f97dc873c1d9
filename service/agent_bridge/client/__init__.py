"""What a program does to be on the channel: find the registry, ask it, stay connected."""
