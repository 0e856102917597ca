"""A worker that answers over HTTP, and how tests ask it."""

import http.client
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from prometheus_client.parser import text_string_to_metric_families

from tests.cli.conftest import Program
from tests.support import processes

Samples = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


def ask(port: int, path: str, method: str = "GET", timeout: float = 5) -> tuple[int, str, Mapping[str, str]]:
    """Return status, body and headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), dict(answer.getheaders())
    finally:
        connection.close()


def ask_raw(port: int, request: bytes, timeout: float = 10) -> bytes:
    """Send bytes and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except ConnectionError:
            pass
        return answer


def samples(text: str) -> Samples:
    """Parse what was exposed, as Prometheus does; it must be well-formed and say nothing twice."""
    assert text.endswith("\n")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def value(of: Samples, metric: str, /, **labels: str) -> float:
    return of[metric, tuple(sorted(labels.items()))]


@contextmanager
def answering(tenure: Program, *options: str, target: str = "shop:app") -> Iterator[tuple[processes.Child, int]]:
    """Run a worker that answers on a port of its own."""
    with tenure.begin("worker", target, "--http", "0", *options) as worker:
        worker.wait_for_output("answering on http://127.0.0.1:", 20)
        port = worker.output.split("http://127.0.0.1:")[1].split(":")[0]
        yield worker, int(port)
