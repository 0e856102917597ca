"""Tests of the driver redis-streams run on every supported server."""

from collections.abc import AsyncIterator

import pytest
import redis

from tests.redis.conftest import client, own_server, pytest_generate_tests, server  # noqa: F401 - fixtures and hook
from tests.streams.line import StreamLine
from tests.support.servers import Server


@pytest.fixture
async def line(server: Server, client: redis.Redis, namespace: str) -> AsyncIterator[StreamLine]:  # noqa: F811
    """A queue of the test's own on the shared server, and its stream."""
    line = StreamLine(server.url, client, namespace)
    yield line
    await line.aclose()
