"""What a person types; one module a topic, all printing in one place."""
