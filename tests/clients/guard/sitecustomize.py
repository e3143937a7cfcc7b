"""A guard for every Python process that finds this folder on PYTHONPATH: no socket may lead beyond this machine.

Each attempt is written to the file that $TUTORIAL_GUARD_LOG names, one line each, and refused. Python's audit events
(https://docs.python.org/3/library/audit_events.html) tell of it whichever library asks.
"""

import ipaddress
import os
import socket
import sys

_WATCHED = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.bind": 1,
            "socket.getaddrinfo": 0, "socket.gethostbyname": 0}
# Any address of this machine: what a kernel may bind is checked from outside as well, in test_safety.py.
_HERE = {"localhost", "", socket.gethostname()}


def _host(address):
    """The host of a socket address, or None where there is none (a Unix socket, an address given before)."""
    if isinstance(address, tuple) and address:
        address = address[0]
    elif not isinstance(address, (str, bytes)) or str(address).startswith("/"):
        return None
    return address.decode(errors="replace") if isinstance(address, bytes) else address


def _beyond(event, host):
    if event == "socket.bind" and host == "":
        return True  # every address of the machine
    if host is None or host in _HERE:
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True  # the name of another machine


def _watch(event, arguments):
    which = _WATCHED.get(event)
    if which is None:
        return
    if which == 1 and getattr(arguments[0], "family", None) not in (socket.AF_INET, socket.AF_INET6):
        return
    host = _host(arguments[which])
    if _beyond(event, host):
        with open(os.environ["TUTORIAL_GUARD_LOG"], "a", encoding="utf-8") as log:
            log.write(f"{event} {host!r} by {os.environ.get('JPY_SESSION_NAME') or ' '.join(sys.argv)[:200]}\n")
        raise PermissionError(f"{event}: {host!r} is beyond this machine.")


if "TUTORIAL_GUARD_LOG" in os.environ:
    sys.addaudithook(_watch)
