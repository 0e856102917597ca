"""The URLs by which the library reaches the tests' topologies."""

from tests.support.cluster import Cluster
from tests.support.sentinel import Sentinels


def sentinel_url(group: Sentinels, database: int = 0) -> str:
    """Return the URL that names all sentinels."""
    hosts = ",".join(f"{host}:{port}" for host, port in group.addresses)
    return f"redis+sentinel://{hosts}/{group.master_name}/{database}"


def cluster_url(built: Cluster) -> str:
    """Return the URL of one node that runs; the others are found through it."""
    return built.url.replace("redis://", "redis+cluster://")
