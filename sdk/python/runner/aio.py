"""Operations that wait, for async handlers. Several run side by side with asyncio.gather."""

from __future__ import annotations

import asyncio
import datetime
import time
from asyncio import base_events
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from typing import Any, Literal, TypeVar

from . import _fetch, _host, _standard, _values
from ._services import PasswordCheck

T = TypeVar("T")


class _Selector:
    """What the event loop waits with: started operations, and timers of the host."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[None]] = {}
        self.timer: tuple[int, float] | None = None  # the ticket of the timer that ends first, and when

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return []
        if not self.waiting:
            if timeout is None:
                raise RuntimeError("the handler waits for something that can never happen: no fetch and no timer is under way")
            _host.operate("sleep", b'{"seconds":%r}' % min(timeout, 60.0))
            return []
        if timeout is not None:
            end = time.monotonic() + timeout
            if self.timer is None or self.timer[1] > end + 0.001:
                self.timer = (_host.start("sleep", b'{"seconds":%r}' % min(timeout, 60.0)), end)
        ticket = _host.wait()
        if self.timer is not None and ticket == self.timer[0]:
            self.timer = None
            _host.take(ticket, "sleep")
            return []
        future = self.waiting.pop(ticket, None)
        if future is None:
            _host.message("call_take", ticket)  # of a timer that another one has replaced, or of a cancelled operation
        elif not future.done():
            future.set_result(None)
        return []

    def get_map(self) -> dict[Any, Any]:
        return {}

    def close(self) -> None:
        pass


class _Loop(base_events.BaseEventLoop):
    """An event loop over the host's operations."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Selector()

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Runs the function at once: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:
            future.set_exception(error)
        return future


    async def sock_connect(self, sock: Any, address: Any) -> None:
        raise OSError("a handler has no sockets: async handlers send HTTP requests by runner.aio.fetch")

    async def _make_subprocess_transport(self, *args: Any, **settings: Any) -> Any:
        raise OSError(_standard.NO_PROCESSES)


class _Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = _Loop  # type: ignore[assignment]


asyncio.set_event_loop_policy(_Policy())
_loop = _Loop()


# How many seconds tasks have to end after they were cancelled.
_CANCEL_SECONDS = 1.0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end. Tasks that it leaves are cancelled, and generators that it leaves are closed."""
    asyncio.set_event_loop(_loop)
    generators = set(_loop._asyncgens)  # type: ignore[attr-defined]
    try:
        return _loop.run_until_complete(coroutine)
    finally:
        left = asyncio.all_tasks(_loop) - _kept
        for task in left:
            task.cancel()
        if left:
            _loop.run_until_complete(_ended(left))
        if not _host.starting and (opened := set(_loop._asyncgens) - generators):  # type: ignore[attr-defined]
            _loop.run_until_complete(_closed(opened))


async def _closed(generators: set[AsyncGenerator[Any, Any]]) -> None:
    for error in await asyncio.gather(*(generator.aclose() for generator in generators), return_exceptions=True):
        if error is not None:
            _host.log(_host.WARN, f"an async generator that the handler left did not end: {error!r}")


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    """Waits for tasks that were cancelled. One that goes on all the same is left, with a warning."""
    _, left = await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)
    _kept.update(left)
    for task in list(left)[:3]:
        _host.log(_host.WARN, f"the task {task.get_name()} of {task.get_coro()} did not end {_CANCEL_SECONDS:g}s after it was cancelled, and was left")


# Tasks that go on when a coroutine has ended: those of the start, and those that ignore that they are cancelled.
_kept: set[asyncio.Task[Any]] = set()


async def operate(op: str, args: bytes) -> Any:
    """Starts an operation, and waits for its result while other tasks run."""
    ticket = _host.start(op, args)
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    waiting = loop._selector.waiting  # type: ignore[attr-defined]
    waiting[ticket] = future
    try:
        await future
    except asyncio.CancelledError:
        waiting.pop(ticket, None)
        raise
    return _host.take(ticket, op)


async def fetch(
    url: str, *, method: str = "GET", headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    body: bytes | str | None = None, json: Any = None, timeout: float | datetime.timedelta | None = None,
    redirect: Literal["follow", "manual", "error"] | None = None, public_only: bool = False,
) -> _fetch.FetchResponse:
    """Sends a request to another service, as runner.fetch does."""
    args = _fetch.arguments(url, method, headers, body, json, timeout, redirect, public_only=public_only)
    return _fetch.FetchResponse(await operate("fetch", args))


async def hash_password(password: str) -> str:
    """A new hash of the password, as password.hash makes it."""
    return (await operate("password.hash", _values.arguments("password.hash", {"password": password})))["hash"]


async def verify_password(password: str, hash: str | None) -> PasswordCheck:
    """Compares a password with a hash, as password.verify does."""
    args = {"password": password} if hash is None else {"password": password, "hash": hash}
    c = await operate("password.verify", _values.arguments("password.verify", args))
    return PasswordCheck(c["valid"], c["rehash"])
