"""States that a real server may be in. Each holds for a block, shows that it took effect, and is gone afterwards.

A target is a server of the tests, or the URL of one whose user may do everything. The blocks wait for facts, so
asynchronous code enters them in a thread; but `loading` and `killed` start a server, which on Linux dies with the
thread that started it: those belong to the main thread.
"""

import os
import pathlib
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

import redis
from redis.exceptions import BusyLoadingError, NoPermissionError, OutOfMemoryError

from tests.support import processes
from tests.support.proxy import Proxy
from tests.support.servers import Server, ServerFailed, ping
from tests.support.topologies import Target, client, info, raw

Probe = Callable[[], object]
AWAY = (redis.ConnectionError, redis.TimeoutError)
# While loading a server looks at its clients after every 1,024 commands, so each may last a little only.
LOAD_DELAY_US = 20
LEAST_LOAD_US = 60  # what the shortest sleep of a Linux process really takes


def says(probe: Probe, refusal: type[redis.RedisError] | None, code: str) -> bool:
    """Tell whether the server's word on a probe is the expected one: this refusal, or none."""
    try:
        probe()
    except redis.RedisError as error:
        return refusal is not None and isinstance(error, refusal) and code in str(error)
    return refusal is None


def expect(probe: Probe, refusal: type[redis.RedisError] | None = None, code: str = "", timeout: float = 10) -> None:
    """Return as soon as a probe is refused in this way, or without a refusal as soon as it is served."""
    named = "served" if refusal is None else f"refused with {refusal.__name__} {code}"
    processes.eventually(lambda: says(probe, refusal, code), timeout, what=f"a probe is {named}")


def write(control: redis.Redis) -> None:
    """Write and delete a name that nobody else uses."""
    name = f"probe:{secrets.token_hex(8)}"
    control.set(name, "x", px=60_000)
    control.delete(name)


def greet(target: Target) -> None:
    """Connect anew and say hello."""
    with closing(client(target)) as control:
        control.ping()


def connect_and_write(target: Target) -> None:
    with closing(client(target)) as control:
        write(control)


@contextmanager
def configured(control: redis.Redis, settings: dict[str, str | int]) -> Iterator[None]:
    """Set options of a running server for the block, then put back what was there."""
    before = {name: control.config_get(name)[name] for name in settings}
    try:
        for name, value in settings.items():
            control.config_set(name, value)
        yield
    finally:
        for name, earlier in before.items():
            control.config_set(name, earlier or "")


@contextmanager
def out_of_memory(target: Target) -> Iterator[None]:
    """Whatever may need memory is refused with OOM; reads and deletions go on."""
    with closing(client(target, retries=1)) as control:
        with configured(control, {"maxmemory-policy": "noeviction", "maxmemory": 1}):
            expect(partial(write, control), OutOfMemoryError)
            yield
        expect(partial(write, control))


@contextmanager
def failing_saves(target: Target) -> Iterator[None]:
    """Every write is refused with MISCONF, because the server cannot save its data; reads go on.

    A directory stands where the server wants to put its file: that stops even a server that runs as root.
    """
    with closing(client(target, retries=1)) as control:
        place = pathlib.Path(*(control.config_get(name)[name] or "" for name in ("dir", "dbfilename")))
        aside = place.with_suffix(".aside")
        existed = place.exists()
        with configured(control, {"stop-writes-on-bgsave-error": "yes", "save": "3600 1"}):
            if existed:
                place.rename(aside)
            place.mkdir()
            try:
                save(control, "err")
                expect(partial(write, control), redis.ResponseError, "MISCONF")
                yield
            finally:
                place.rmdir()
                if existed:
                    aside.rename(place)
                save(control, "ok")
        if not existed:
            place.unlink()  # it would be loaded by a restart that finds no log
        expect(partial(write, control))


def save(control: redis.Redis, outcome: str) -> None:
    """Have the server save its data in the background and wait for this outcome."""

    def idle() -> bool:
        seen = control.info("persistence")
        return not seen["rdb_bgsave_in_progress"] and not seen["aof_rewrite_in_progress"]

    processes.eventually(idle, what="no save is under way")
    control.bgsave()
    processes.eventually(
        lambda: idle() and control.info("persistence")["rdb_last_bgsave_status"] == outcome,
        what=f"a save ends {outcome}",
    )


@contextmanager
def read_only(target: Target) -> Iterator[None]:
    """Every write is refused with READONLY: the server has become the replica of an address where nobody is."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as nobody, closing(client(target, retries=1)) as control:
        nobody.bind(("127.0.0.1", 0))  # and does not listen: nor can anybody else do so there
        control.replicaof("127.0.0.1", nobody.getsockname()[1])
        try:
            expect(partial(write, control), redis.ReadOnlyError)
            yield
        finally:
            control.replicaof("NO", "ONE")
        expect(partial(write, control))


@contextmanager
def busy(target: Target, *, after_ms: int = 50) -> Iterator[None]:
    """Everything is refused with BUSY, because a script runs without end; it has written nothing and can be killed."""

    def loop() -> None:
        with closing(client(target, timeout=None)) as victim, suppress(redis.ResponseError):  # its own killing
            victim.eval("while true do end", 0)

    with closing(client(target)) as control, configured(control, {"lua-time-limit": after_ms}):
        thread = threading.Thread(target=loop, name="busy", daemon=True)
        thread.start()
        try:
            expect(control.ping, redis.ResponseError, "BUSY")
            yield
        finally:
            # It may have been killed by somebody else, or not yet have begun.
            processes.eventually(partial(ended, thread, control), what="the script is killed")
        expect(partial(write, control))


def ended(thread: threading.Thread, control: redis.Redis) -> bool:
    with suppress(redis.ResponseError):
        control.script_kill()
    thread.join(0.05)
    return not thread.is_alive()


@contextmanager
def forbidden(target: Target, *commands: str, user: str = "default", as_user: Target | None = None) -> Iterator[None]:
    """The user is refused these commands with NOPERM, on open connections too; then it has its old rights again.

    `as_user` is the user's own URL, for a user other than the target's. Do not forbid ACL to the target's own user.
    """
    with closing(client(target, retries=1)) as control, closing(client(as_user or target, retries=1)) as affected:
        listed = users(control)
        (rules,) = [rest for _, name, *rest in listed if name == user]
        # Wrongly counted arguments and unknown subcommands are refused before rights are looked at.
        counts = {name: abs(raw(control, "COMMAND", "INFO", name)[name.lower()]["arity"]) for name in commands}
        raw(control, "ACL", "SETUSER", user, *(f"-{name}" for name in commands))
        try:
            for name, count in counts.items():
                expect(partial(raw, affected, name, *["HELP"] * (count - 1)), NoPermissionError)
            yield
        finally:
            raw(control, "ACL", "SETUSER", user, "reset", *rules)
        assert users(control) == listed


def users(control: redis.Redis) -> list[list[str]]:
    """Return every user's rules, word by word, without the one that is the rule and only sometimes listed."""
    lines = [str(line).split() for line in raw(control, "ACL", "LIST")]
    return [[word for word in line if word != "sanitize-payload"] for line in lines]


@contextmanager
def no_more_clients(target: Target) -> Iterator[None]:
    """New connections are refused (maxclients is reached); those that are open go on."""
    with closing(client(target)) as control:  # open, so it can still heal
        with configured(control, {"maxclients": 1}):
            expect(partial(greet, target), redis.ConnectionError, "max number of clients")
            yield
        expect(partial(greet, target))


@contextmanager
def half_open(proxy: Proxy) -> Iterator[None]:
    """Connections through the proxy stay open, and nothing that is sent arrives, in either direction."""
    with closing(client(proxy.url, timeout=0.1)) as through:
        through.ping()
        proxy.blackhole(requests=True)
        try:
            expect(through.ping, redis.TimeoutError)
            yield
        finally:
            proxy.heal()
    expect(partial(greet, proxy.url))


@contextmanager
def killed(server: Server, *, control: Target | None = None) -> Iterator[None]:
    """The server was ended by SIGKILL; after the block it runs again, on the data that it had written.

    `control` is the administrator's URL, for a server that asks for a password.
    """
    before = info(control or server, "server")["run_id"]
    server.kill9()
    try:
        assert not ping(server.socket)
        yield
    finally:
        server.start()
    expect(partial(connect_and_write, control or server))
    assert info(control or server, "server")["run_id"] != before


@contextmanager
def loading(server: Server, *, hold: float = 10) -> Iterator[None]:
    """The server has been restarted and refuses everything with LOADING, until the block ends.

    It needs the server's log of commands (AOF). The block may last `hold` seconds; a longer one fails.
    """
    filler = f"probe:{secrets.token_hex(8)}"
    with closing(client(server)) as control:
        control.eval(
            "for i = 1, ARGV[1] do redis.call('SET', KEYS[1], i) end", 1, filler, int(hold * 1e6 / LEAST_LOAD_US)
        )
    server.stop()
    ordinary = server.extra_args
    server.extra_args = (*ordinary, "--key-load-delay", str(LOAD_DELAY_US))
    starter = Starter(server)
    starter.start()
    try:
        expect(partial(greet, server), BusyLoadingError)
        yield
        if not info(server, "persistence")["loading"]:
            raise AssertionError(f"the block lasted longer than {hold} s, and loading ended by itself")
    finally:
        server.extra_args = ordinary
        finish(server, starter)
        with closing(client(server)) as control:
            expect(partial(write, control))
            control.delete(filler)


def finish(server: Server, starter: "Starter") -> None:
    """Let a server load the rest without delay; Redis 6.2 takes no settings meanwhile and must start once more."""
    try:
        with closing(client(server)) as control:
            control.config_set("key-load-delay", 0)
    except redis.ResponseError:
        processes.kill9(server.pid)
        starter.join(10)
        server.start()
    else:
        assert starter.loaded.wait(30), server.log[-2000:]


class Starter(threading.Thread):
    """Starts a server without waiting for its data; lives as long as it does, or it would be killed with the thread."""

    def __init__(self, server: Server) -> None:
        super().__init__(name="starter", daemon=True)
        self.server = server
        self.loaded = threading.Event()

    def run(self) -> None:
        with suppress(ServerFailed):  # its log tells the test, which waits in vain
            self.server.start(60)
            self.loaded.set()
            if processes.dies_with_parent():
                with suppress(ChildProcessError):  # it was reaped before
                    os.waitid(os.P_PID, self.server.pid, os.WEXITED | os.WNOWAIT)


class Repeated:
    """An act that a thread repeats; a server that is away meanwhile is not this act's failure, anything else is."""

    def __init__(self, target: Target, act: Callable[[redis.Redis], int], every: float) -> None:
        self.rounds = 0
        self.effects = 0
        self._target = target
        self._act = act
        self._every = every
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="repeated", daemon=True)

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                with suppress(*AWAY), closing(client(self._target)) as control:
                    while not self._over.wait(self._every):
                        self.effects += self._act(control)
                        self.rounds += 1
                self._over.wait(self._every)
        except BaseException as error:
            self._error = error

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()
        if self._error is not None:
            raise self._error


@contextmanager
def forgotten_scripts(target: Target, *, every: float = 0.1) -> Iterator[Repeated]:
    """The server forgets its cached scripts again and again; `rounds` tells how often it has."""
    repeated = Repeated(target, lambda control: int(bool(control.script_flush())), every)
    with closing(client(target, retries=1)) as control:
        known = control.script_load("return 'known'")
        with repeated.running():
            processes.eventually(lambda: not control.script_exists(known)[0], what="a script is forgotten")
            yield repeated


@contextmanager
def killed_connections(target: Target, *, every: float = 0.1) -> Iterator[Repeated]:
    """The server hangs up on every ordinary client again and again; `effects` counts the connections."""
    repeated = Repeated(target, lambda control: int(control.client_kill_filter(_type="normal", skipme=True)), every)
    with closing(client(target)) as victim, repeated.running():
        expect(victim.ping, redis.ConnectionError)
        yield repeated
