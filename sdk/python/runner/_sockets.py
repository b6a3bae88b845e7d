"""HTTP of Python's library and of packages: a socket that sends what is written to it by fetch.

There are no connections in a sandbox. http.client, urllib.request, urllib3 and requests write a request to a socket and read
its response, and that is all that this one does.
"""

from __future__ import annotations

import io
import socket
import types
from typing import Any

from . import _fetch, _host

_NONE = "a handler has no sockets: send HTTP requests with runner.fetch, urllib.request, http.client or requests"


class HostSocket:
    """A connection to a service, as far as HTTP needs it."""

    def __init__(self, family: int = socket.AF_INET, type: int = socket.SOCK_STREAM, proto: int = 0, fileno: int | None = None) -> None:
        if type & 0xF != socket.SOCK_STREAM or fileno is not None:
            raise OSError(_NONE)
        self.family, self.type, self.proto = family, type, proto
        self.address: tuple[str, int] | None = None
        self.secure = False
        self.server: str | None = None
        self.timeout: float | None = None
        self.written = bytearray()
        self.answer: io.BytesIO | None = None

    def connect(self, address: Any) -> None:
        self.address = (address[0], address[1])

    def wrapped(self, host: Any) -> HostSocket:
        self.secure = True
        self.server = host.decode() if isinstance(host, bytes) else host
        return self

    def settimeout(self, timeout: float | None) -> None:
        self.timeout = timeout if isinstance(timeout, (int, float)) else None

    def gettimeout(self) -> float | None:
        return self.timeout

    def setblocking(self, blocking: bool) -> None:
        pass

    def setsockopt(self, *option: Any) -> None:
        pass

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.written += data

    def send(self, data: Any, flags: int = 0) -> int:
        self.sendall(data)
        return len(data)

    def makefile(self, mode: str = "r", buffering: int | None = None, **named: Any) -> Any:
        if "w" in mode:
            raise OSError(_NONE)
        return _Answer(self)

    def recv(self, size: int, flags: int = 0) -> bytes:
        return self.response().read(size)

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        data = self.response().read(size or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def response(self) -> io.BytesIO:
        if self.answer is None:
            self.answer = io.BytesIO(self._send())
        return self.answer

    def _send(self) -> bytes:
        """Sends the request that was written, and returns the response as a server would have written it."""
        if self.address is None or b"\r\n\r\n" not in self.written:
            raise OSError(_NONE)
        head, _, body = bytes(self.written).partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/1."):
            raise OSError(_NONE)
        host, headers, chunked = "", [], False
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.strip(), value.strip()
            lower = name.lower()
            if lower == "host":
                host = value
            elif lower == "transfer-encoding":
                chunked = "chunked" in value.lower()
            elif lower not in ("content-length", "connection", "accept-encoding", "keep-alive", "expect", "te", "upgrade"):
                headers.append((name, value))
        if chunked:
            body = _dechunked(body)
        scheme = "https" if self.secure else "http"
        origin = _origin(scheme, *self.address)
        if host and _origin(scheme, *_parted(host, 443 if self.secure else 80)) != origin and target.startswith("/"):
            raise OSError(f"the header Host is {host!r} and the connection is to {origin}: a request cannot have the name of another host")
        url = origin + target if target.startswith("/") else target  # for a proxy: the host connects by itself
        try:
            got = _fetch.by_byte(url, method, headers, body or None, self.timeout and min(self.timeout, 60))
        except _host.HostError as error:
            if error.code == "deadline":
                raise TimeoutError(f"{method} {url}: {error.message}") from error
            if error.code in ("unavailable", "denied"):
                raise ConnectionError(f"{method} {url}: {error.message}") from error
            raise
        reply = [f"HTTP/1.1 {got.status} {_reason(got.status)}"]
        reply += [f"{name}: {value}" for name, value in got.header_lines if name not in ("transfer-encoding", "content-length", "connection")]
        length = next((value for name, value in got.header_lines if name == "content-length"), None)
        reply.append(f"content-length: {length if method == 'HEAD' and length else len(got.body)}")
        reply.append("connection: close")  # clients look whether a kept connection has ended, which a file would tell
        return "\r\n".join(reply).encode("latin-1") + b"\r\n\r\n" + got.body

    def bind(self, *address: Any) -> None:
        raise OSError(_NONE)

    listen = accept = connect_ex = recvfrom = sendto = bind  # type: ignore[assignment]

    def fileno(self) -> int:
        return -1

    def getpeername(self) -> Any:
        return self.address

    getsockname = getpeername

    def getpeercert(self, binary_form: bool = False) -> Any:
        """A certificate for the server: the host checks the real one."""
        name = self.server or (self.address[0] if self.address else "")
        kind = "IP Address" if name.replace(".", "").isdigit() or ":" in name else "DNS"
        return b"" if binary_form else {"subjectAltName": ((kind, name),), "subject": ((("commonName", name),),)}

    def selected_alpn_protocol(self) -> None:
        return None

    def version(self) -> str:
        return "TLSv1.3"

    def shutdown(self, how: int) -> None:
        pass

    def close(self) -> None:
        pass

    detach = unwrap = close

    def __enter__(self) -> HostSocket:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class _Answer(io.BufferedIOBase):
    """The file of a response. It is read when its first byte is."""

    def __init__(self, of: HostSocket) -> None:
        self._of = of

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return self._of.response().read(size)

    read1 = read  # type: ignore[assignment]

    def readinto(self, buffer: Any) -> int:
        return self._of.response().readinto(buffer)

    def readline(self, size: int | None = -1) -> bytes:
        return self._of.response().readline(size if size is not None else -1)

    def peek(self, size: int = 0) -> bytes:
        answer = self._of.response()
        at = answer.tell()
        data = answer.read(size or 1)
        answer.seek(at)
        return data


def _parted(host: str, port: int) -> tuple[str, int]:
    """The name and the port of a header Host."""
    name, colon, digits = host.rpartition(":")
    return (name, int(digits)) if colon and digits.isdecimal() and digits.isascii() else (host, port)


def _origin(scheme: str, name: str, port: int) -> str:
    """An origin in one form, with the name in ASCII."""
    if not name.isascii():
        name = name.encode("idna").decode()
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    return f"{scheme}://{name.lower().rstrip(".")}" + ("" if port == (443 if scheme == "https" else 80) else f":{port}")


def _reason(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _dechunked(data: bytes) -> bytes:
    body, at = b"", 0
    while True:
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        if size == 0:
            return body
        body += data[end + 2 : end + 2 + size]
        at = end + 4 + size


def _addresses(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
    name = host.decode() if isinstance(host, bytes) else host or "localhost"
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, int(port or 0)))]


def _connect(address: Any, timeout: Any = None, source_address: Any = None, **named: Any) -> HostSocket:
    made = HostSocket()
    made.settimeout(timeout)
    made.connect(address)
    return made


def _no_name(*args: Any) -> Any:
    raise OSError(_NONE)


def install() -> None:
    socket.gethostbyname = socket.gethostbyname_ex = socket.gethostbyaddr = _no_name  # type: ignore[assignment]
    socket.socket = HostSocket  # type: ignore[assignment,misc]
    socket.getaddrinfo = _addresses  # type: ignore[assignment]
    socket.create_connection = _connect  # type: ignore[assignment]


def fill_ssl(module: types.ModuleType) -> None:
    """Makes the module ssl, as far as clients of HTTPS need it. The host checks certificates."""
    import enum

    class SSLError(OSError):
        pass

    class SSLCertVerificationError(SSLError, ValueError):
        pass

    class SSLContext:
        def __init__(self, protocol: Any = None) -> None:
            self.protocol = protocol
            self.check_hostname = True
            self.verify_mode = VerifyMode.CERT_REQUIRED
            self.options = self.verify_flags = 0
            self.minimum_version = self.maximum_version = None
            self.post_handshake_auth = False
            self.hostname_checks_common_name = False
            self.keylog_filename = None
            self.sni_callback = None

        def wrap_socket(self, sock: Any, server_side: bool = False, do_handshake_on_connect: bool = True, suppress_ragged_eofs: bool = True,
                        server_hostname: Any = None, session: Any = None) -> Any:  # fmt: skip
            if server_side or not isinstance(sock, HostSocket):
                raise OSError(_NONE)
            return sock.wrapped(server_hostname)

        def _nothing(self, *args: Any, **named: Any) -> None:
            pass

        load_default_certs = load_verify_locations = set_ciphers = set_alpn_protocols = set_default_verify_paths = _nothing

        def load_cert_chain(self, *args: Any, **named: Any) -> None:
            raise OSError("a handler has no certificates of its own: the host makes the connection")

    class MemoryBIO:
        def __init__(self) -> None:
            raise OSError(_NONE)

    class SSLObject(MemoryBIO):
        pass

    class SSLSession(MemoryBIO):
        pass

    class VerifyMode(enum.IntEnum):
        CERT_NONE = 0
        CERT_OPTIONAL = 1
        CERT_REQUIRED = 2

    class TLSVersion(enum.IntEnum):
        MINIMUM_SUPPORTED = -2
        TLSv1 = 769
        TLSv1_1 = 770
        TLSv1_2 = 771
        TLSv1_3 = 772
        MAXIMUM_SUPPORTED = -1

    module.__dict__.update(
        SSLContext=SSLContext, SSLSocket=HostSocket, SSLObject=SSLObject, SSLSession=SSLSession, MemoryBIO=MemoryBIO, SSLError=SSLError, CertificateError=SSLCertVerificationError,
        SSLCertVerificationError=SSLCertVerificationError, VerifyMode=VerifyMode, TLSVersion=TLSVersion,
        CERT_NONE=VerifyMode.CERT_NONE, CERT_OPTIONAL=VerifyMode.CERT_OPTIONAL, CERT_REQUIRED=VerifyMode.CERT_REQUIRED,
        PROTOCOL_TLS=2, PROTOCOL_SSLv23=2, PROTOCOL_TLS_CLIENT=16, PROTOCOL_TLS_SERVER=17, PROTOCOL_TLSv1=3, PROTOCOL_TLSv1_1=4,
        PROTOCOL_TLSv1_2=5, HAS_SNI=True, HAS_ALPN=False, HAS_NEVER_CHECK_COMMON_NAME=True,
        OPENSSL_VERSION="the host's TLS", OPENSSL_VERSION_NUMBER=0x30000000, OPENSSL_VERSION_INFO=(3, 0, 0, 0, 0),
        OP_NO_SSLv2=0, OP_NO_SSLv3=0, OP_NO_TLSv1=0, OP_NO_TLSv1_1=0, OP_NO_COMPRESSION=0, OP_NO_TICKET=0, OP_ALL=0,
        create_default_context=lambda *a, **n: SSLContext(), _create_default_https_context=lambda *a, **n: SSLContext(),
        _create_unverified_context=lambda *a, **n: SSLContext(), _create_stdlib_context=lambda *a, **n: SSLContext(),
        match_hostname=lambda *a: None, VERIFY_X509_TRUSTED_FIRST=0, VERIFY_X509_STRICT=0, VERIFY_X509_PARTIAL_CHAIN=0,
        SSLWantReadError=type("SSLWantReadError", (SSLError,), {}), SSLWantWriteError=type("SSLWantWriteError", (SSLError,), {}),
        SSLZeroReturnError=type("SSLZeroReturnError", (SSLError,), {}), SSLSyscallError=type("SSLSyscallError", (SSLError,), {}),
        SSLEOFError=type("SSLEOFError", (SSLError,), {}),
        AlertDescription=enum.IntEnum("AlertDescription", {"CLOSE_NOTIFY": 0}),
        Purpose=enum.Enum("Purpose", {"SERVER_AUTH": 1, "CLIENT_AUTH": 2}),
    )
