"""The log: records of logging with their levels, and what print writes."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from . import _host


def handle(logging: Any) -> None:
    """Sends records of the module logging to the runner's log."""

    class Handler(logging.Handler):  # type: ignore[misc]
        def emit(self, record: Any) -> None:
            try:
                text = self.format(record)
                if record.name != "root":
                    text = f"{record.name}: {text}"
                level = record.levelno
                _host.log(
                    _host.ERROR if level >= logging.ERROR else _host.WARN if level >= logging.WARNING
                    else _host.INFO if level >= logging.INFO else _host.DEBUG,
                    text,
                )
            except RecursionError:
                raise
            except Exception:
                self.handleError(record)

    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(Handler())
        root.setLevel(logging.INFO)


def install() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr]
    warnings.showwarning = _warn


def _warn(message, category, filename, lineno, file=None, line=None):  # type: ignore[no-untyped-def]
    _host.log(_host.WARN, f"{category.__name__}: {message} ({filename.removeprefix('/app/')}:{lineno})")
