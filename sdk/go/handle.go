package runner

import (
	"errors"
	"fmt"

	"runner.example/sdk/go/internal/answer"
	"runner.example/sdk/go/internal/host"
)

// Handler answers one request. An error that it returns becomes an answer too:
// a failed operation on rows, keys, sessions or webhooks its own status (not_found
// 404, denied 403, conflict 409, unavailable 503), a body that is not JSON 400
// invalid_json, anything else 500 handler_failed with the text in the server's log
// alone.
type Handler func(ctx *Context, req *Request) (Response, error)

// HostError is a failed host call.
type HostError = host.Error

// New gives the context and the request that a handler gets on h. Only this
// module can name the type of h: handlers are run by Handle and by package
// runnertest.
func New(h host.Host) (*Context, *Request) {
	client := Client{APIKeys: APIKeys{h}, Sessions: Sessions{h}, Webhooks: Webhooks{h}, Jobs: Jobs{h}}
	return &Context{Client: client, host: h}, &Request{host: h}
}

// Serve runs the handler on h and sends its answer. See New for h.
func Serve(h host.Host, handler Handler) {
	ctx, req := New(h)
	response, err := handler(ctx, req)
	if err == nil {
		err = send(h, response)
	}
	if err != nil {
		sendFailure(h, err)
	}
}

func send(h host.Host, r Response) error {
	var set []host.Pair
	for _, header := range r.headers {
		if err := h.SetHeader(header.Name, header.Value); err != nil {
			return refused(fmt.Sprintf("set header %q", header.Name), err, answer.Header(set, header.Name, header.Value))
		}
		set = append(set, host.Pair(header))
	}
	if r.stream != nil {
		return sendStream(h, r)
	}
	if r.failure && (r.code != "" || r.members != nil) {
		args, err := r.problem()
		if err == nil {
			err = h.Call("problem", args)
		}
		if err != nil {
			return unexpected{fmt.Errorf("answer with an error of status %d: %w", r.status, err)}
		}
		return nil
	}
	if r.failure {
		if err := h.SendError(r.status, "", r.message); err != nil {
			return refused(fmt.Sprintf("answer with an error of status %d", r.status), err, answer.Failure(r.status, r.message))
		}
		return nil
	}
	if f, ok := r.body.(sentFile); ok {
		return f.send(h, r.status)
	}
	if part, ok := r.body.(Part); ok {
		return sendPart(h, r.status, part)
	}
	body, err := r.encode()
	if err != nil {
		return fmt.Errorf("write the answer's body as JSON: %w", err)
	}
	if err := h.Send(r.status, body); err != nil {
		return refused(fmt.Sprintf("answer with status %d and %d bytes", r.status, len(body)), err,
			answer.Body(r.status, len(body)))
	}
	return nil
}

// sendPart hands a result through. That a query found no row is an error like
// that of a look-up.
func sendPart(h host.Host, status int, part Part) error {
	err := h.SendResult(status, host.Part(part))
	var failure *host.Error
	if errors.As(err, &failure) && (failure.Code != "not_found" || part != Row) {
		return refused(fmt.Sprintf("answer with status %d and the last result", status), err, answer.Part(status, host.Part(part)))
	}
	return err
}

// refused says which part of an answer the host did not take and, as the host
// itself gives a code alone, the reason that the rules have for that code.
func refused(act string, err error, why *host.Error) error {
	var failure *host.Error
	if errors.As(err, &failure) && failure.Message == "" && why != nil && why.Code == failure.Code {
		err = why
	}
	return unexpected{fmt.Errorf("%s: %w", act, err)}
}

// unexpected hides the code of a host error that is the handler's own fault:
// an answer that the host would not take.
type unexpected struct{ error }

// sendFailure answers for a handler that returned an error. The answer may be
// refused because one was sent before; then that one stands.
func sendFailure(h host.Host, err error) {
	status, code, message := 500, "handler_failed", ""
	var hostError *HostError
	var bodyError *BodyError
	switch {
	case errors.As(err, &bodyError):
		status, code, message = 400, "invalid_json", bodyError.Error()
	case errors.As(err, &hostError) && hostError.Answers():
		switch hostError.Code {
		case "not_found":
			status, code, message = 404, "not_found", hostError.Message
		case "denied":
			status, code, message = 403, "forbidden", hostError.Message
		case "conflict":
			status, code, message = 409, "conflict", hostError.Message
		case "unavailable":
			status, code, message = 503, "unavailable", hostError.Message
		}
	}
	if status == 500 {
		h.Log(4, "error\n"+err.Error())
	}
	_ = h.SendError(status, code, message)
}
