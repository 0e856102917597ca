"""Background jobs that are leased, never owned."""
