"""How an attempt to send a mail can fail. None of them names an address, or quotes what a login has sent."""

from tenure.errors import TenureError


class MailError(TenureError):
    """A mail was not sent, as far as is known."""


class MailDeferred(MailError):
    """No recipient has it, and the next attempt may succeed: a temporary refusal, no connection, no login."""


class MailRefused(MailError):
    """The server has refused it for good: the job gives up."""


class MailUnconfirmed(MailError):
    """It was sent, and the server's answer never came: the next attempt may repeat it, with the same Message-ID."""
