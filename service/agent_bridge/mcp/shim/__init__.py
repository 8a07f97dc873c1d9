"""The stdio shim: standard library only, and nothing of ours."""
