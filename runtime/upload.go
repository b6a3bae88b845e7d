package runtime

import (
	"context"
	"io"
	"time"

	"runner.example/hostabi"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/runtime/front"
	"runner.example/runtime/upload"
	"runner.example/schema"
)

// uploadRate is the least number of bytes per second of an upload, after the read timeout of the request.
const uploadRate = 16 << 10

var errContentTypes = fault.New(fault.InvalidRequest, "the request has several Content-Type headers")

// readUpload reads the body of a request on a route with upload, and stores its files. They stay until the invocation ends.
// It does nothing if the body has been read, because the request begins again on another bundle.
func (r *Runtime) readUpload(s *requestState, x *front.Exchange) error {
	if s.form != nil {
		return nil
	}
	if x.IsInParts() {
		return errPartsRead // the handler of the previous bundle has read parts
	}
	encoding, _ := x.Header("content-encoding")
	contentType, lines := x.Header("content-type")
	switch {
	case len(encoding) > 0 && string(encoding) != "identity":
		return errEncoded
	case lines > 1:
		return errContentTypes
	}
	if err := x.ReserveBodyMemory(upload.Memory); err != nil {
		return err
	}
	form := &hostabi.Form{}
	body := &uploadedBody{exchange: x, limit: s.route.bodyBytes}
	fields, err := upload.Read(r.serving, body, string(contentType), func(ctx context.Context, f upload.File, contents io.Reader) error {
		info, release, err := r.opt.Store.PutPinned(ctx, contents)
		if err != nil {
			return err
		}
		s.uploads = append(s.uploads, release)
		if err := r.opt.Store.ReplicateBlob(ctx, info.Digest); err != nil { // before the handler's time begins
			return err
		}
		form.Files = append(form.Files, hostabi.FormFile{
			File:  schema.File{ID: ids.New(r.opt.Calendar()), Name: f.Name, Type: f.Type, Size: info.Size, SHA256: info.Digest},
			Field: f.Field, Declared: f.Declared,
		})
		return nil
	}, x.ReserveBodyMemory)
	if err != nil {
		return storeFault(err)
	}
	for _, f := range fields {
		form.Fields = append(form.Fields, [2]string{f.Name, f.Value})
	}
	s.form, s.body = form, nil
	return nil
}

// uploadedBody reads the body of an upload as it arrives.
type uploadedBody struct {
	exchange *front.Exchange
	limit    int64
	read     int64
}

func (b *uploadedBody) Read(p []byte) (int, error) {
	x := b.exchange
	end := x.Started.Add(x.ReadTimeout() + time.Duration(b.read/uploadRate)*time.Second)
	n, err := x.ReadPart(p, b.limit, end)
	b.read += int64(n)
	return n, err
}
