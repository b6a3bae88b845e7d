package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"runner.example/internal/system/socket"
)

// Reason says why there is no response.
type Reason string

// The reasons.
const (
	// Invalid: the request is not valid.
	Invalid Reason = "invalid"
	// Denied: an origin, an address, a redirect or a header is not allowed.
	Denied Reason = "denied"
	// TooLarge: a part of the request or the response is too large.
	TooLarge Reason = "too_large"
	// Unavailable: no connection, no valid certificate, or an incomplete response.
	Unavailable Reason = "unavailable"
)

// Kind is what failed on the connection. It has nothing that the remote end sent.
type Kind string

// The kinds.
const (
	KindAddress     Kind = "address that may not be reached"
	KindDNS         Kind = "dns"
	KindDial        Kind = "dial"
	KindTLS         Kind = "tls"
	KindCertificate Kind = "certificate"
	KindTimeout     Kind = "timeout"
	KindReset       Kind = "reset"
	KindProtocol    Kind = "protocol"
)

// handshakeError is a TLS handshake that failed.
type handshakeError struct{ cause error }

func (e *handshakeError) Error() string { return "tls handshake: " + e.cause.Error() }
func (e *handshakeError) Unwrap() error { return e.cause }

// kindOf classifies err.
func kindOf(err error) Kind {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	if is(errUnreachable) {
		return KindAddress
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return KindDNS
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return KindCertificate
	}
	if timed, ok := errors.AsType[net.Error](err); ok && timed.Timeout() || is(context.DeadlineExceeded) {
		return KindTimeout
	}
	if _, ok := errors.AsType[*handshakeError](err); ok {
		return KindTLS
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return KindDial
	}
	if is(io.EOF, io.ErrUnexpectedEOF, net.ErrClosed) || socket.Broken(err) {
		return KindReset
	}
	return KindProtocol
}

// Error is why a request has no response.
type Error struct {
	Reason Reason
	// Detail is for the author of the handler.
	Detail string
	// Kind is for the log; empty if Detail is enough.
	Kind Kind
}

// ErrRefused is the error of a response whose bytes were not admitted.
var ErrRefused = refuse(TooLarge, "the answers have more bytes together than a request may get")

// Error returns the text for logs.
func (e *Error) Error() string {
	if e.Kind == "" {
		return e.Detail
	}
	return e.Detail + ": " + string(e.Kind)
}

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

func failure(kind Kind, reason Reason, format string, args ...any) *Error {
	e := refuse(reason, format, args...)
	e.Kind = kind
	return e
}
