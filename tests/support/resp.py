"""Where one Redis command or reply ends and the next begins: framing only, nothing is interpreted."""


def line_end(data: bytes | bytearray, start: int) -> int:
    """Return the position behind the line that starts here, or -1 while it is incomplete."""
    found = data.find(b"\r\n", start)
    return -1 if found < 0 else found + 2


def value_end(data: bytes | bytearray, start: int) -> int:
    """Return the position behind the value that starts here (RESP 2 or 3), or -1 while it is incomplete.

    It holds for commands too: they are arrays of strings, or one plain line.
    """
    pending, position = 1, start
    while pending:
        pending -= 1
        after = line_end(data, position)
        if after < 0:
            return -1
        kind, first, position = bytes(data[position : position + 1]), data[position + 1 : after - 2], after
        if kind in {b"$", b"=", b"!"}:
            length = int(first)
            if length >= 0:
                position += length + 2
        elif kind in {b"*", b"~", b">"}:
            pending += max(int(first), 0)
        elif kind == b"%":
            pending += 2 * int(first)
        elif kind == b"|":
            pending += 2 * int(first) + 1
        if position > len(data):
            return -1
    return position


class Frames:
    """Cuts a stream of bytes into whole commands or replies."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Take what arrived; return the values that are now complete."""
        self._buffer += data
        complete: list[bytes] = []
        start = 0
        while start < len(self._buffer) and (end := value_end(self._buffer, start)) >= 0:
            complete.append(bytes(self._buffer[start:end]))
            start = end
        del self._buffer[:start]
        return complete
