"""Asks a worker's probe, for commands that run beside it."""

import http.client

from tenure.web.server import Address

MOST_BYTES = 1000


def asked(address: Address, path: str, seconds: float) -> str:
    """Return why the probe at this path is not well, or an empty text when it is. Never raises."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES).decode("utf-8", "replace").strip()
    except TimeoutError:
        return f"nothing at {address} answered within {seconds:g} s"
    except (OSError, http.client.HTTPException) as error:
        return f"nothing at {address} answers ({type(error).__name__})"
    finally:
        connection.close()
    return "" if answer.status == http.HTTPStatus.OK else body or f"it answered {answer.status}"
