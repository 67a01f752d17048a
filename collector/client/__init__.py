"""A synchronous client of the collector's HTTP API: the only access to stored data."""

from collector.client.client import Client, CollectorSettings
from collector.client.pairs import PairChanges, PairPage, RegressionPage
from collector.errors import ClientError

__all__ = [
    "Client",
    "ClientError",
    "CollectorSettings",
    "PairChanges",
    "PairPage",
    "RegressionPage",
]
