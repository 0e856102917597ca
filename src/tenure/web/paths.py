"""The paths that a worker answers."""

from typing import Final

LIVE: Final = "/livez"
READY: Final = "/readyz"
METRICS: Final = "/metrics"
