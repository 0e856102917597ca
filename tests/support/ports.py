"""Loopback ports that nobody else uses."""

import socket


def free_port() -> int:
    """Return a free TCP port of the loopback interface.

    Another process may take it before it is used, so whoever starts a server on it tries again with another.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
