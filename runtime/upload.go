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

// uploadRate is how many bytes of an upload must arrive per second, beside the read timeout that each request has: a
// client that is slower for long is disconnected.
const uploadRate = 16 << 10

var errContentTypes = fault.New(fault.InvalidRequest, "the request has several Content-Type headers")

// readUpload reads the body of a request on a route with upload, and stores its files. They stay until the invocation ends.
// When the request runs on another bundle, the body has been read.
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
	if err := x.HoldBodyMemory(upload.Memory); err != nil {
		return err
	}
	form := &hostabi.Form{}
	body := &uploadedBody{exchange: x, limit: s.route.bodyBytes}
	fields, err := upload.Read(r.serving, body, string(contentType), func(ctx context.Context, p upload.Part, contents io.Reader) error {
		info, release, err := r.opt.Store.PutPinned(ctx, contents)
		if err != nil {
			return err
		}
		s.uploads = append(s.uploads, release)
		if err := r.opt.Store.SpreadBlob(ctx, info.Digest); err != nil { // now, and not within the time of the handler
			return err
		}
		form.Files = append(form.Files, hostabi.FormFile{
			File:  schema.File{ID: ids.New(r.opt.Calendar()), Name: p.Name, Type: p.Type, Size: info.Size, SHA256: info.Digest},
			Field: p.Field, Declared: p.Declared,
		})
		return nil
	}, x.HoldBodyMemory)
	if err != nil {
		return storeFault(err)
	}
	for _, f := range fields {
		form.Fields = append(form.Fields, [2]string{f.Name, f.Value})
	}
	s.form, s.body = form, nil
	return nil
}

// uploadedBody is the body of an upload as it arrives.
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
