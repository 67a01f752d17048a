"""The base of the client's parts."""

from collector.client.connection import Connection


class Resource:
    """The requests on one subject of the API, over the client's connection."""

    _connection: Connection
