"""What the tests stand on: real servers, real processes, and a proxy that breaks connections."""
