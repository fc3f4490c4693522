"""The address of a Ray cluster, checked without Ray."""

from __future__ import annotations

from remnant.errors import InvalidInput

AUTO = "auto"  # the cluster that this machine belongs to


def host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of the address of a cluster.

    Raises:
        InvalidInput: It is not HOST:PORT.

    Example:
        >>> host_and_port("[::1]:6379")
        ('::1', 6379)
    """
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidInput(
            f"{address} is not the address of a Ray cluster.",
            hint="Pass HOST:PORT, as ray start --head prints it, or auto.",
        )
    return host.strip("[]"), int(port)
