"""Errors at the start of a dashboard.

DashboardError
├── PortInUseError        another program listens on the port
└── DashboardStartError   the dashboard's process ended or did not answer in time
"""


class DashboardError(Exception):
    """The dashboard cannot start; the message says what to do."""


class PortInUseError(DashboardError):
    """Another program already listens on the dashboard's port."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is already in use; stop what listens there, "
            f"or choose another with --port"
        )
        self.port = port


class DashboardStartError(DashboardError):
    """The dashboard's process ended, or did not answer in time."""
