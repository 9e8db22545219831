"""What outlives the broker: the store's contract and its fillings. Knows nothing of the broker."""
