"""From the store to the harnesses and back: plan, apply, ledger, adopt, review."""
