package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"runner.example/internal/fault"
	"runner.example/node/admin"
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

// refusal returns the error that an operator sees, and logs it if it is the server's fault.
func (s *responder) refusal(ctx context.Context, err error) admin.Refusal {
	f := fault.Of(explained(err))
	if f.Code == fault.Internal || f.Code == fault.Unavailable || f.Code == fault.DiskFull {
		s.logger.ErrorContext(ctx, "operation failed", "code", f.Code, "error", err)
	}
	return refusalOf(f)
}

func refusalOf(f *fault.Fault) admin.Refusal {
	return admin.Refusal{Code: f.Code, Detail: f.Detail, Hint: f.Hint}
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
