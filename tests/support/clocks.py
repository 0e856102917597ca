"""A server whose wall clock can be set, by a library that is loaded before all others."""

import pathlib
import struct
import subprocess

from tests.support.servers import Server

SOURCE = pathlib.Path(__file__).with_name("ahead.c")


class Clock:
    """What a server that was started with ``environment`` takes for the time."""

    def __init__(self, directory: str) -> None:
        """Compile the library; needs gcc."""
        library, self._file = pathlib.Path(directory, "ahead.so"), pathlib.Path(directory, "ahead")
        if not library.exists():
            subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "TENURE_TEST_CLOCK": str(self._file)}
        self._file.write_bytes(struct.pack("q", 0))

    def set(self, seconds: float) -> None:
        """Put it off by so much, at once."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", int(seconds * 1e6)))


def restarted(server: Server, environment: dict[str, str]) -> None:
    """Start a server again, with these variables besides the test's own."""
    server.environment = environment
    server.restart()
