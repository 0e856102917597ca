"""One contending process: told on its first line of input which store to open and what to do there.

It dies with whoever started it: at the end of its input it exits at once, whatever it is doing.
"""

import asyncio
import importlib
import json
import os
import sys
import threading
from typing import Any

from tenure.queue import Queue
from tenure.testing.contending.acts import perform
from tenure.testing.contending.talk import Talk


def main() -> None:
    """Do what the first line says."""
    asyncio.run(life(json.loads(sys.stdin.readline())))


async def life(told: dict[str, Any]) -> None:
    """Open the store, act, and close it."""
    talk = Talk(lambda line: print(line, flush=True))  # noqa: T201 - the pipe is the conversation
    threading.Thread(target=listen, args=(talk,), daemon=True).start()
    module, _, function = told["factory"].partition(":")
    queue: Queue = getattr(importlib.import_module(module), function)(*told["args"])
    try:
        await perform(told["act"], queue, told["params"], talk)
    finally:
        await queue.aclose()


def listen(talk: Talk) -> None:
    """Take orders until there is nobody left to give any."""
    for line in sys.stdin:
        talk.take(line)
    os._exit(4)


if __name__ == "__main__":
    main()
