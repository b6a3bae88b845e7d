"""What of Python's library works in another way here: there are no threads, no sockets and no OpenSSL."""

from __future__ import annotations

import os
import re
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _context, _host, _log, _query

if TYPE_CHECKING:
    from importlib.abc import Loader
else:  # that module imports many others
    Loader = object

# Modules that are made here instead of those that this build of Python lacks.
_MADE: dict[str, Callable[[types.ModuleType], None]] = {}
# Modules that this build lacks, with what to do.
_ABSENT = {
    "multiprocessing": "a handler is one process: start jobs, or fetch several things with asyncio.gather",
    "concurrent.futures.process": "a handler is one process: start jobs, or fetch several things with asyncio.gather",
    "ctypes": "machine code cannot run in a sandbox",
    "_ctypes": "machine code cannot run in a sandbox",
    "mmap": "files of a handler cannot be mapped: read them",
    "fcntl": "files of a handler cannot be locked or written",
    "curses": "a handler has no terminal",
    "readline": "a handler has no terminal",
    "termios": "a handler has no terminal",
    "tkinter": "a handler has no display",
    "lzma": "this build of Python has no lzma: zlib and bz2 are there",
}


#: What to do instead of starting a process.
NO_PROCESSES = "a handler cannot start processes: call another service with runner.fetch, or start a job with jobs.enqueue"
# Functions of os that this build lacks. Packages ask whether they are there, so they must stay absent.
_PROCESSES = re.compile("system|v?fork(pty)?|kill(pg)?|wait(pid|id)?|(posix_)?spawn.*|exec[lv].*")


# Modules that are changed after their import. Most apps import few of them, and imports are most of a start.
_CHANGED: dict[str, Callable[[types.ModuleType], None]] = {}


class _Finder:  # importlib.abc would import tempfile and random
    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name in _MADE:
            return ModuleSpec(name, self)  # type: ignore[arg-type]
        if name in _CHANGED:
            return _changed(name, path)
        if name in _ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}: {_ABSENT[name]}", name=name)
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        _MADE[module.__name__](module)


def _changed(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _Changing(spec.loader)
    return spec


class _Changing(Loader):
    """Imports one module, and changes it. Its own loader may be the one of all modules in a file."""

    def __init__(self, loader: Any) -> None:
        self._own = loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._own
        self._own.exec_module(module)
        _CHANGED[module.__name__](module)


def _anyio(module: types.ModuleType) -> None:
    """The threads of anyio, and so of Starlette: the work is done at once."""

    async def run_sync_in_worker_thread(function: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        return function(*args)

    def run_sync(cls: type, function: Callable[..., Any], args: Any = (), *rest: Any, **settings: Any) -> Any:
        return run_sync_in_worker_thread(function, *args)

    if hasattr(module, "run_sync_in_worker_thread"):  # before 4.0
        module.run_sync_in_worker_thread = run_sync_in_worker_thread  # type: ignore[attr-defined]
    else:
        module.AsyncIOBackend.run_sync_in_worker_thread = classmethod(run_sync)  # type: ignore[attr-defined]


_CHANGED["anyio._backends._asyncio"] = _anyio


def _asyncio(module: types.ModuleType) -> None:
    """asyncio.run in a handler that is not async: its event loop is that of the host."""
    from . import aio  # sets it


_CHANGED["asyncio"] = _asyncio


def _requests(module: types.ModuleType) -> None:
    """The files of certificates, which requests looks for before it connects: the host has its own."""
    module.HTTPAdapter.cert_verify = lambda *args, **named: None  # type: ignore[attr-defined]


_CHANGED["requests.adapters"] = _requests


def _random(module: types.ModuleType) -> None:
    """random: a generator that is made in the start is reported, until end_start."""
    make = module.Random.__init__

    def __init__(self: Any, x: Any = None) -> None:
        make(self, x)
        if x is None and not isinstance(self, module.SystemRandom):
            import warnings

            warnings.warn("random.Random() gives every request the same numbers: make it in the handler", RuntimeWarning, 2)

    module.Random._init_of_random = make
    module.Random.__init__ = __init__


_CHANGED["random"] = _random


def _tempfile(module: types.ModuleType) -> None:
    """tempfile.TemporaryFile in memory, and so SpooledTemporaryFile: frameworks keep large uploads in them."""
    import io

    def TemporaryFile(
        mode: str = "w+b", buffering: int = -1, encoding: str | None = None, newline: str | None = None, suffix: Any = None,
        prefix: Any = None, dir: Any = None, *, errors: str | None = None,
    ) -> Any:
        file = io.BytesIO()
        return file if "b" in mode else io.TextIOWrapper(file, encoding, errors, newline)

    module.TemporaryFile = TemporaryFile  # type: ignore[attr-defined]


_CHANGED["tempfile"] = _tempfile


def _executors(module: types.ModuleType) -> None:
    """concurrent.futures.thread: an executor does its work at once, in the thread of the caller."""
    from concurrent.futures import _base

    class ThreadPoolExecutor(_base.Executor):
        def __init__(self, max_workers: int | None = None, thread_name_prefix: str = "", initializer: Any = None, initargs: Any = ()) -> None:
            self._closed = False
            self._max_workers = max_workers or 1
            if initializer is not None:
                initializer(*initargs)

        def submit(self, function: Any, /, *args: Any, **named: Any) -> Any:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future: Any = _base.Future()
            future.set_running_or_notify_cancel()
            try:
                future.set_result(function(*args, **named))
            except BaseException as error:
                future.set_exception(error)
            return future

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            self._closed = True

    class BrokenThreadPool(_base.BrokenExecutor):
        pass

    module.ThreadPoolExecutor = ThreadPoolExecutor  # type: ignore[attr-defined]
    module.BrokenThreadPool = BrokenThreadPool  # type: ignore[attr-defined]


_MADE["concurrent.futures.thread"] = _executors


def _socket(module: types.ModuleType) -> None:
    from . import _sockets

    _sockets.install()


_CHANGED["socket"] = _socket


def _ssl(module: types.ModuleType) -> None:
    import socket  # before what replaces it

    from . import _sockets

    _sockets.fill_ssl(module)


_MADE["ssl"] = _ssl


_CHANGED["logging"] = _log.handle


def install() -> None:
    """Replaces what works in another way, before the app is imported."""
    sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
    os.__getattr__ = _absent_of_os  # type: ignore[attr-defined]
    import _thread  # that of threading is bound to the real one, whose error it handles

    _thread.start_new_thread = _thread.start_new = _start_new_thread  # type: ignore[assignment]
    for name in _CHANGED:
        if name in sys.modules:
            _CHANGED[name](sys.modules[name])


def _absent_of_os(name: str) -> Any:
    raise AttributeError(f"module 'os' has no attribute {name!r}" + (f": {NO_PROCESSES}" if _PROCESSES.fullmatch(name) else ""), name=name, obj=os)


def _subprocess(module: Any) -> None:
    def __init__(self: Any, *args: Any, **named: Any) -> None:
        raise OSError(NO_PROCESSES)

    module.Popen.__init__ = __init__


_CHANGED["subprocess"] = _subprocess

_NO_THREADS = "a handler has one thread: run async functions side by side with asyncio.gather, or start a job with jobs.enqueue"


def _threads(module: Any) -> None:
    def start(self: Any) -> None:
        raise RuntimeError(f"cannot start the thread {self.name}: {_NO_THREADS}")

    module.Thread.start = start


_CHANGED["threading"] = _threads


def _start_new_thread(*args: Any, **named: Any) -> Any:
    raise RuntimeError(f"cannot start a thread: {_NO_THREADS}")


def _hashes(hashlib: Any) -> None:
    """hashlib.pbkdf2_hmac and scrypt, which need OpenSSL: the host computes them."""
    import base64

    from . import _values

    names = {"sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512"}

    def derive(op: str, args: dict[str, Any]) -> bytes:
        return base64.b64decode(_values.call(op, args)["base64"])

    def pbkdf2_hmac(hash_name: str, password: Any, salt: Any, iterations: int, dklen: int | None = None) -> bytes:
        """The key of a password (RFC 8018). The host computes it."""
        hash = names.get(hash_name.lower().replace("-", ""))
        if hash is None:
            raise ValueError(f"unsupported hash type {hash_name}: sha1, sha256, sha384 and sha512 are")
        if iterations < 1:
            raise ValueError("iteration value must be greater than 0.")
        length = hashlib.new(hash_name).digest_size if dklen is None else dklen
        if length < 1:
            raise ValueError("key length must be greater than 0.")
        key = _values.call(
            "crypto.importKey",
            {"format": "raw", "data": {"base64": bytes(password)}, "algorithm": {"name": "PBKDF2"}, "usages": ["deriveBits"]},
        )
        algorithm = {"name": "PBKDF2", "hash": hash, "salt": {"base64": bytes(salt)}, "iterations": iterations}
        return derive("crypto.deriveBits", {"algorithm": algorithm, "key": key, "length": length * 8})

    def scrypt(password: Any, *, salt: Any, n: int, r: int, p: int, maxmem: int = 0, dklen: int = 64) -> bytes:
        """The key of a password (RFC 7914). The host computes it."""
        if n < 2 or n & (n - 1):
            raise ValueError("n must be a power of 2.")
        args = {"password": {"base64": bytes(password)}, "salt": {"base64": bytes(salt)}, "n": n, "r": r, "p": p, "length": dklen}
        return derive("password.scrypt", args)

    hashlib.pbkdf2_hmac = pbkdf2_hmac
    hashlib.scrypt = scrypt


_CHANGED["hashlib"] = _hashes


def end_start() -> None:
    """Ends what install does for the start alone."""
    del _CHANGED["random"]  # a request that imports it may make generators
    random = sys.modules.get("random")
    if random is not None:
        random.Random.__init__ = random.Random._init_of_random  # type: ignore[attr-defined]


def begin() -> None:
    """Makes new for a request what the start has left of randomness and of earlier requests."""
    modules = sys.modules
    random = modules.get("random")
    if random is not None:
        random.seed(int.from_bytes(os.urandom(32), "little"))  # without a value it takes twice the time
    tempfile = modules.get("tempfile")
    if tempfile is not None:
        tempfile._name_sequence = None  # type: ignore[attr-defined]
    uuid = modules.get("uuid")
    if uuid is not None:
        uuid._node = None  # type: ignore[attr-defined]
        uuid._last_timestamp = None  # type: ignore[attr-defined]
    numpy = modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
    _context._context = None
    _host.HostError.last = None
    _query.waiting.clear()
