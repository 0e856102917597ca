"""A web server that services of Apprise post to, and an application whose worker knows channels on it."""

import json
import threading
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tenure import Tenure
from tenure.config import Settings


class Services:
    """What each path was posted, and the statuses that it answers with before it takes anything."""

    def __init__(self) -> None:
        self.port = 0
        self.posted: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.taken: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self.statuses: defaultdict[str, deque[int]] = defaultdict(deque)

    def answer(self, path: str, body: dict[str, Any]) -> int:
        """Take what was posted, or refuse it."""
        self.posted[path].append(body)
        status = self.statuses[path].popleft() if self.statuses[path] else 200
        if status == 200:
            self.taken[path].append(body)
        return status


@pytest.fixture
def services() -> Iterator[Services]:
    """The server."""
    made = Services()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = made.answer(self.path.strip("/").partition("/")[0], body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture
async def app(namespace: str, services: Services) -> AsyncIterator[Tenure]:
    """Three channels; the path of each begins with its name, and holds a token, as those of real services do."""
    environ = {
        f"TENURE_NOTIFY_{name.upper()}_URL": f"json://user:c4nary-password@127.0.0.1:{services.port}/{name}/c4nary-token"
        for name in ("ops", "oncall", "chat")
    }
    made = Tenure("memory://", namespace=namespace, settings=Settings.from_environ(environ))
    yield made
    await made.aclose()
