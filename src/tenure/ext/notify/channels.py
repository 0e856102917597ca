"""Channels: services by a logical name, which the worker's environment explains.

``channels=["ops"]`` is ``TENURE_NOTIFY_OPS_URL``, one URL of Apprise's. A job holds the name and nothing else of it.
"""

import re
from collections.abc import Mapping
from typing import Final

from tenure.errors import ConfigurationError, InvalidOption
from tenure.naming import shown

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)


def check_channels(names: object) -> list[str]:
    """Return the names of channels, each once, or raise ``InvalidOption``."""
    if isinstance(names, str) or not isinstance(names, list | tuple | set | frozenset) or not names:
        raise InvalidOption("channels must be a list of names, and not an empty one; nothing was sent")
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidOption(
                f"channel {shown(name)} is not a name: a letter, then up to 63 of letters, digits, '_' and '-'; where "
                "it leads is said in the worker's environment; nothing was sent"
            )
    return list(dict.fromkeys(sorted(names) if isinstance(names, set | frozenset) else names))


def key_of(channel: str) -> str:
    """Return the key that explains a channel."""
    return f"TENURE_NOTIFY_{channel.upper().replace('-', '_')}_URL"


def url_of(channel: str, environ: Mapping[str, str]) -> str:
    """Return a channel's URL, which is a secret; raises ``ConfigurationError``, which names the key."""
    key = key_of(channel)
    url = environ.get(key, "").strip()
    if not url:
        raise ConfigurationError(key, f"is not set in this worker, so it cannot notify the channel {channel!r}")
    return url
