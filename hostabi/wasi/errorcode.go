package wasi

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"runner.example/hostabi/outbound"
	"runner.example/internal/component/canon"
	"runner.example/internal/fault"
)

// httpCodes are the numbers of the cases of error-code.
var httpCodes = codes("wasi:http/types", "http-error-code")

// internalError is the error-code with a text.
func internalError(text string) any {
	return canon.Case{Index: httpCodes()["internal-error"], Value: some(strings.ToValidUTF8(text, "\ufffd"))}
}

// kindCodes are the error-codes of what fails on a connection.
var kindCodes = map[outbound.Kind]string{
	outbound.KindAddress:     "destination-IP-prohibited",
	outbound.KindDial:        "connection-refused",
	outbound.KindTLS:         "TLS-protocol-error",
	outbound.KindCertificate: "TLS-certificate-error",
	outbound.KindTimeout:     "connection-timeout",
	outbound.KindReset:       "connection-terminated",
	outbound.KindProtocol:    "HTTP-protocol-error",
}

// codeOf is the error-code of an error of package outbound, or a fault of a fetch. checking says that
// nothing was sent yet.
func (r *run) codeOf(err error, checking bool) any {
	e, ok := errors.AsType[*outbound.Error](err)
	switch {
	case !ok && fault.CodeOf(err) == fault.Deadline:
		return canon.Case{Index: httpCodes()["HTTP-response-timeout"]}
	case !ok && fault.CodeOf(err) == fault.Limit:
		return internalError(fault.Of(err).Detail)
	case !ok:
		r.call.LogInternal("fetch", err)
		return internalError("the host failed; its log says more under this request's id")
	case e.Kind == outbound.KindDNS:
		return canon.Case{Index: httpCodes()["DNS-error"], Value: []any{none, none}}
	case kindCodes[e.Kind] != "":
		return canon.Case{Index: httpCodes()[kindCodes[e.Kind]]}
	case e.Reason == outbound.Denied: // the code has no text
		r.call.Warn("request to another service refused: " + e.Detail)
		return canon.Case{Index: httpCodes()["HTTP-request-denied"]}
	case e.Reason == outbound.TooLarge && !checking:
		return canon.Case{Index: httpCodes()["HTTP-response-body-size"], Value: none}
	}
	return internalError(e.Detail)
}

// The error-codes that are the handler's, which answers 500, and those of a service that took too
// long, which answers 504. Others are of a service that failed, which answers 502.
var (
	ownCodes     = []string{"configuration-error", "internal-error", "loop-detected"}
	timeoutCodes = []string{
		"DNS-timeout", "connection-timeout", "connection-read-timeout", "connection-write-timeout", "HTTP-response-timeout",
	}
)

// answerCode answers with an error-code that the component has passed to response-outparam.set.
func (r *run) answerCode(code canon.Case) {
	name, text := "", ""
	for n, i := range httpCodes() {
		if i == code.Index {
			name = n
		}
	}
	status := http.StatusBadGateway
	switch {
	case slices.Contains(ownCodes, name):
		status = http.StatusInternalServerError
	case slices.Contains(timeoutCodes, name):
		status = http.StatusGatewayTimeout
	}
	if detail, ok := code.Value.(canon.Case); ok && detail.Index == 1 {
		text, _ = detail.Value.(string) // of an internal-error
	}
	r.call.AnswerError(status, "error-code "+name, text)
}
