"""How one exchange with the server can go wrong, told apart by what may have happened."""


class Trouble(Exception):
    """An exchange brought no answer that can be used."""


class Unsent(Trouble):
    """No connection: nothing was sent."""


class Lost(Trouble):
    """Sent, or partly sent, and no answer came."""


class Rejected(Trouble):
    """The server answered with an error. ``partly``: it may have executed a part of the call."""

    def __init__(self, code: str, problem: str, *, partly: bool = False) -> None:
        self.code = code
        self.problem = problem
        self.partly = partly
        super().__init__(f"{code}: {problem}")


class Elsewhere(Rejected):
    """Another node of the cluster has the keys, or, with ``asking``, will soon have them: nothing was executed."""

    def __init__(self, code: str, problem: str, *, slot: int, host: str, port: int, asking: bool) -> None:
        super().__init__(code, problem)
        self.slot = slot
        self.host = host
        self.port = port
        self.asking = asking


class Unloaded(Trouble):
    """The server does not know the script (any more): nothing was executed."""
