"""The base class of the client's groups of requests."""

from collector.client.connection import Connection


class ApiResource:
    """The requests of one subject of the API, over the client's connection."""

    _connection: Connection
