"""Take one of the stream's protections out of the scripts, and a test notices."""

import asyncio

import pytest
import redis

from tenure.drivers.redis.scripts import Scripts, packaged
from tests.streams.line import StreamLine
from tests.streams.mutations import MUTANTS, StreamMutant
from tests.support.servers import Server

SERVERS = ["valkey"]
PATIENCE = 5.0


async def notices(mutant: StreamMutant, line: StreamLine) -> bool:
    """Tell whether the test fails. Only a failed expectation counts, not a script that breaks off."""
    try:
        await asyncio.wait_for(mutant.noticed_by(line), PATIENCE)
    except (AssertionError, TimeoutError):
        return True
    finally:
        await line.aclose()
    return False


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.text} {mutant.name}")
async def test_a_test_notices(mutant: StreamMutant, server: Server, client: redis.Redis, namespace: str) -> None:
    sources = packaged()
    mutated = Scripts({**sources, mutant.text: mutant.of(sources[mutant.text])}, line="stream")
    assert not await notices(mutant, StreamLine(server.url, client, namespace)), "it fails on the scripts as they are"
    assert await notices(mutant, StreamLine(server.url, client, f"{namespace}-m", mutated)), "nobody noticed"
