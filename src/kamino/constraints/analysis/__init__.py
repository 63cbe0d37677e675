"""What can be said of constraints without a table."""
