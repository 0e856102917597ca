"""Whether a store answers at all, asked once."""

from tenure.drivers.redis.blocking import BlockingLinks
from tenure.drivers.redis.endpoint import Endpoint
from tenure.drivers.redis.keys import Keyspace
from tenure.drivers.redis.plain import PlainCall
from tenure.errors import StoreError, StoreRefused


def answers(endpoint: Endpoint, prefix: str, namespace: str, seconds: float) -> bool:
    """Tell whether the store answers within about so many seconds, be it by a refusal; blocking."""
    links = BlockingLinks(endpoint, seconds, seconds)
    try:
        links.perform(PlainCall(b"SMEMBERS", Keyspace(namespace, prefix).queues))
    except StoreRefused:
        return True  # what it refuses is for the operator to see, and no reason to use another store
    except StoreError:
        return False
    else:
        return True
    finally:
        links.close()
