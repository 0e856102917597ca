"""Mails as jobs: ``await app.mail.push(message, via="transactional")`` (``tenure[mail]``).

``letter`` makes of a message what is stored, ``job`` is the job, and ``mail`` the front that applications see. In the
worker ``transports`` reads where a transport's server is, ``lines`` keeps connections to it, ``dialogue`` speaks SMTP,
and ``postman`` decides what becomes of each recipient.
"""

import importlib.util
from typing import TYPE_CHECKING

from tenure.errors import MissingExtra
from tenure.ext.mail.errors import MailDeferred, MailError, MailRefused, MailUnconfirmed
from tenure.ext.mail.mail import Mail

if TYPE_CHECKING:
    from tenure.app import Tenure

__all__ = ["Mail", "MailDeferred", "MailError", "MailRefused", "MailUnconfirmed", "extend"]


def extend(app: "Tenure") -> Mail:
    """Return the application's mail, its job registered; raises ``MissingExtra``.

    The library itself is imported where the first mail is sent: a program that only pushes never loads it.
    """
    if importlib.util.find_spec("aiosmtplib") is None:
        raise MissingExtra("mail", "app.mail")
    return Mail(app)
