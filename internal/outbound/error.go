package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
)

// Reason is why there is no answer.
type Reason string

// The reasons.
const (
	// Invalid: the request is none.
	Invalid Reason = "invalid"
	// Denied: an origin, an address, a redirect or a header that is not allowed.
	Denied Reason = "denied"
	// TooLarge: a part of the request or the answer is.
	TooLarge Reason = "too_large"
	// Unavailable: there is no connection, no trust or no whole answer.
	Unavailable Reason = "unavailable"
)

// Kind is what went wrong with the connection. It is ours to say: nothing that the
// other end sent is in it.
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

// kindOf tells what err is of.
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
	if is(io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE) {
		return KindReset
	}
	return KindProtocol
}

// Error is a request that has no answer.
type Error struct {
	Reason Reason
	// Detail is for whoever wrote the request.
	Detail string
	// Kind is for the log; empty when Detail says all.
	Kind Kind
}

// Error gives the text for logs.
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
