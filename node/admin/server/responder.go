package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/fault"
	"runner.example/node/admin"
	"runner.example/runtime/auth"
)

// idle is how long an idle connection is kept.
const idle = time.Minute

// responder has what both servers need to answer.
type responder struct {
	local  *Local
	logger *slog.Logger
}

func newResponder(local *Local, logger *slog.Logger) responder {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return responder{local, logger}
}

// refuse answers with an error that an operator sees, and logs it if it is the server's fault.
func (s *responder) refuse(w http.ResponseWriter, r *http.Request, err error) {
	document := s.refusal(r.Context(), explained(err))
	if limited, ok := errors.AsType[*auth.Refusal](err); ok && limited.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(limited.RetryAfter))
	}
	if document.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	_ = http.NewResponseController(w).SetWriteDeadline(clock.In(answerTimeout))
	w.Header().Set("Content-Type", admin.RefusalType)
	w.WriteHeader(document.Status)
	text, _ := admin.Marshal(document) // it has only texts and numbers
	_, _ = w.Write(text)               // the client may have closed the connection
}

// refusal returns the document of an error, which it logs if it is the server's fault.
func (s *responder) refusal(ctx context.Context, err error) admin.Refusal {
	f := fault.Of(explained(err))
	if f.Code == fault.Internal || f.Code == fault.Unavailable || f.Code == fault.DiskFull {
		s.logger.ErrorContext(ctx, "operation failed", "code", f.Code, "error", err)
	}
	return admin.RefusalOf(f)
}

// readArguments reads the arguments of an operation, at most limit bytes.
func readArguments(r *http.Request, limit int64) ([]byte, error) {
	args, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	if tooLong, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.New(fault.TooLarge, "the arguments have more than %d bytes", tooLong.Limit)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "read the arguments")
	}
	return args, nil
}
