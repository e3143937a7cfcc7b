"""Writing a file so that there is always either the old one or the whole new one."""

import contextlib
import os
import threading
import time
from pathlib import Path


def write_whole(path, text):
    """Write a text file and put it in place in one step. Raises OSError, and then leaves what was there."""
    path = Path(path)
    scratch = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")  # nobody else's
    try:
        with scratch.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        replace(scratch, path)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise


def replace(source, target):
    """os.replace, tried again for a while: on Windows it fails while another process reads the target."""
    for left in range(20, -1, -1):
        try:
            return os.replace(source, target)
        except PermissionError:
            if not left or os.name != "nt":
                raise
            time.sleep(0.02)
