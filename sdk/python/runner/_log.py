"""The log: records of logging with their levels, and what print writes."""

from __future__ import annotations

import logging
import sys
import warnings

from . import _host


class _Handler(logging.Handler):
    """Sends records to the runner's log."""

    def emit(self, record: logging.LogRecord) -> None:
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


def install() -> None:
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(_Handler())
        root.setLevel(logging.INFO)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    warnings.showwarning = _warn


def _warn(message, category, filename, lineno, file=None, line=None):  # type: ignore[no-untyped-def]
    _host.log(_host.WARN, f"{category.__name__}: {message} ({filename.removeprefix('/app/')}:{lineno})")
