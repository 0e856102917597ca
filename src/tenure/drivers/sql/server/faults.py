"""What goes wrong with a server, in words that hold no endpoint, no name and no credential."""

from typing import Final

from tenure.errors import ConnectionFailed

NO_TABLES: Final = (
    "NOTABLES",
    "tenure's tables are not in this database, or not those that this version works with: run `tenure migrate`, or "
    "upgrade this tenure if a newer one has run it",
)

_REASONS: Final = (
    (
        ("password", "authentication", "access denied", "pg_hba", "no role", "role "),
        "the user or the password was refused",
    ),
    (("does not exist", "unknown database"), "the database does not exist"),
    (("too many", "remaining connection slots"), "the server has no connection left to give"),
    (("starting up", "shutting down", "recovery"), "the server is starting or stopping"),
    (("certificate", "ssl", "tls"), "no encrypted connection could be made"),
    (("refused", "no such file", "can't connect"), "nothing listens there"),
    (("timeout", "timed out"), "it did not answer in time"),
    (("translate host", "name or service", "getaddrinfo"), "the host's name is not known"),
)


def connecting(server: str, said: str) -> ConnectionFailed:
    """Return what to raise when no connection can be made, by what the client library said."""
    low = said.lower()
    reason = next((reason for words, reason in _REASONS if any(word in low for word in words)), "it cannot be reached")
    return ConnectionFailed(f"no connection to {server} ({reason}); nothing was sent")
