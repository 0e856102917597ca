"""`tenure worker --http`: what it answers, to whom, and that nothing can hold it up."""

import socket
import time
from http import HTTPStatus
from typing import Any

import pytest

from tenure.web.probes import probes
from tenure.web.server import Address, Answer, Listener
from tenure.worker import vitals as vital
from tenure.worker.stall import Judged
from tenure.worker.vitals import Vitals
from tests.cli.conftest import Program
from tests.support import processes
from tests.telemetry.asking import answering, ask, ask_raw, samples, value

BLOCKING = """
import time
from tenure import Tenure

app = Tenure()


@app.job(name="blocks")
async def blocks(seconds: float) -> None:
    print("blocking", flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
    print("let go", flush=True)
"""


def refuses() -> Answer:
    raise LookupError("hunter2-canary")


class Server:
    """One that answers a few paths."""

    def __init__(self) -> None:
        self.listener = Listener(Address("127.0.0.1", 0))
        self.port = self.listener.address.port
        self.routes = {"/livez": lambda: Answer(HTTPStatus.OK, b"alive\n"), "/broken": refuses}


def test_it_knows_two_methods_and_its_own_paths() -> None:
    server = Server()
    with server.listener.serving(server.routes):
        status, body, headers = ask(server.port, "/livez?verbose=1")
        assert (status, body, headers["Connection"]) == (200, "alive\n", "close")
        status, body, headers = ask(server.port, "/livez", "HEAD")
        assert (status, body, headers["Content-Length"]) == (200, "", "6")
        assert ask(server.port, "/nothing")[0] == 404
        assert ask(server.port, "/livez/../broken")[0] == 404
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            status, _, headers = ask(server.port, "/livez", method)
            assert (status, headers["Allow"]) == (405, "GET, HEAD")
        status, body, _ = ask(server.port, "/broken")
        assert (status, "hunter2" in body) == (500, False)
        assert ask_raw(server.port, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert ask_raw(server.port, b"GET /livez SPDY/3\r\n\r\n").startswith(b"HTTP/1.1 400")
        assert ask_raw(server.port, b"GET /livez HTTP/1.1\r\nX: " + b"y" * 9000).startswith(b"HTTP/1.1 431")
        assert ask(server.port, "/livez")[0] == 200
    with pytest.raises(ConnectionRefusedError):
        ask(server.port, "/livez")


def test_slow_and_many_clients_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.web.server.LONGEST_SECONDS", 0.5)
    server = Server()
    with server.listener.serving(server.routes):
        # Fewer than are answered at the same time: the next one is answered at once.
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for client in slow:
            client.sendall(b"GET /livez HTTP/1.1\r\n")
        assert ask(server.port, "/livez")[0] == 200
        # More than that: they are shut out, and when the slow ones' time is over there is room again.
        slow += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]

        def answered() -> bool:
            try:
                return ask(server.port, "/livez", timeout=0.2)[0] == 200
            except (OSError, TimeoutError):
                return False

        processes.eventually(answered, 5, what="there is room again")
        for client in slow:
            client.settimeout(5)
            with client:
                try:
                    assert client.recv(10) == b""
                except ConnectionError:
                    continue


def test_a_worker_answers_while_a_handler_blocks_its_loop(tenure: Program) -> None:
    tenure.write("blocking.py", BLOCKING)
    with answering(tenure, target="blocking:app") as (worker, port):
        processes.eventually(lambda: ask(port, "/readyz")[0] == 200, what="a claim has succeeded")
        tenure("push", "blocks", "[3]", "--app", "blocking:app")
        worker.wait_for_output("blocking", 10)
        found = []
        while "let go" not in worker.output:
            begun = time.monotonic()
            assert ask(port, "/livez")[:2] == (200, "alive\n")
            assert time.monotonic() - begun < 2
            found.append(samples(ask(port, "/metrics")[1]))
        assert value(found[0], "tenure_jobs_in_flight") == 1
        assert max(value(one, "tenure_loop_lag_seconds") for one in found) > 0.3
        assert tenure("health", "--live", "--http", str(port)).stdout == "alive\n"
        assert worker.stop() == 0
    done = tenure("health", "--live", "--http", str(port))
    assert (done.returncode, done.stdout.partition(" (")[0]) == (1, f"not alive: nothing at 127.0.0.1:{port} answers")


def test_a_worker_whose_store_is_away_lives_and_is_not_ready(tenure: Program) -> None:
    tenure.env["TENURE_URL"] = "redis://127.0.0.1:1"
    with answering(tenure) as (_, port):
        status, body, _ = ask(port, "/readyz")
        assert (status, body.partition(",")[0]) == (503, "no claim has succeeded yet")
        assert ask(port, "/livez")[0] == 200
        done = tenure("health", "--live", "--json", env={"TENURE_HTTP": f"127.0.0.1:{port}"})
        assert (done.returncode, done.stdout) == (0, '{"live": true, "reason": ""}\n')


def test_a_port_that_is_taken_is_told_before_anything_is_claimed(tenure: Program) -> None:
    tenure("push", "greet", '["Ana"]', "--app", "shop:app")
    taken = Listener(Address("127.0.0.1", 0))
    for several in ([], ["--workers", "2"]):
        done = tenure("worker", "shop:app", "--stop-when-empty", "--http", str(taken.address.port), *several)
        assert done.returncode == 2
        assert done.stderr.startswith(f"tenure: --http: cannot listen on {taken.address}: ")
    taken.close()
    assert tenure.ran == []
    for wrong in ("shop", "1:2:3", "70000", "host:", ":80"):
        assert tenure("worker", "shop:app", "--http", wrong).returncode == 2
    assert "needs --http" in tenure("health", "--live").stderr


def test_an_address_of_the_other_family_is_taken_too() -> None:
    try:
        listener = Listener(Address("::1", 0))
    except Exception:  # noqa: BLE001 - a host without it has nothing to prove
        return
    with listener.serving({}):
        assert str(listener.address) == f"[::1]:{listener.address.port}"


class Stub:
    """A part with these attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


def parts(*, age: float = 0.0, still: float = 0.0, ready: bool = True) -> Any:
    loop = Judged("no claim was answered", steps=lambda: 0, rests=lambda: False, limit=120)
    loop.tick(still)
    return Stub(heartbeat=Stub(age=age), loops=[loop], claims=Stub(ready=ready))


def test_what_counts_as_dead_and_as_ready() -> None:
    vitals = Vitals(1)
    routes = probes(vitals, refuses)
    assert (routes["/livez"]().status, routes["/readyz"]().status) == (200, 503)
    late = vital.LIVE_SECONDS + 1
    for state, live, ready in (
        (parts(), 200, 200),
        (parts(ready=False), 200, 503),
        (parts(age=late), 503, 200),
        (parts(still=59), 200, 200),
        (parts(still=late), 503, 200),
    ):
        vitals.attach(state)
        assert (routes["/livez"]().status, routes["/readyz"]().status) == (live, ready)
    vitals.attach(parts(age=late))
    assert routes["/livez"]().body == b"the event loop has not turned for 61 s\n"
    vitals.attach(parts(still=late))
    assert routes["/livez"]().body == b"no claim was answered for 61 s\n"
