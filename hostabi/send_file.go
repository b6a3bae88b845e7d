package hostabi

import (
	"runner.example/hostabi/abi"
	"runner.example/hostabi/fileinfo"
	"runner.example/internal/fault"
	"runner.example/internal/ids"
	"runner.example/schema"
)

// SendFile makes a file the answer, or the part of it that the request asks for. disposition is inline or attachment;
// empty: inline if a browser shows the type without running it. A type that a browser runs is inline only in a sandbox. name
// replaces that of the file; empty: it does not. r has no answer yet.
func SendFile(r *abi.Response, status int, f schema.File, disposition, name string) {
	if disposition == "" {
		disposition = "attachment"
		if fileinfo.Shown(f.Type) {
			disposition = "inline"
		}
	}
	if name == "" {
		name = f.Name
	}
	r.AddHeader([]byte("content-type"), []byte(fileinfo.ContentType(f.Type)))
	r.AddHeader([]byte("content-disposition"), fileinfo.AppendDisposition(nil, disposition, name))
	r.AddHeader([]byte("x-content-type-options"), []byte("nosniff"))
	if disposition == "inline" && fileinfo.Sandboxed(f.Type) {
		r.AddHeader([]byte("content-security-policy"), []byte("sandbox"))
	}
	r.Status = status
	r.File = &abi.FileAnswer{
		Digest: f.SHA256, Size: f.Size, Type: fileinfo.ContentType(f.Type), Modified: ids.TimeOf(f.ID),
	}
}

// sendFile answers with a file that the run knows.
func sendFile(c *Call, args *arguments) (any, error) {
	var f schema.File
	replays := c.Player != nil && !c.live
	if replays { // the host knows no files of a recording
		f = schema.File{ID: args.text("id"), Type: "application/octet-stream"}
	} else {
		f = c.fileArgument(args)
	}
	status, given := args.optionalWhole("status")
	if !given {
		status = 200
	}
	if status < 200 || status > 599 || status == 206 || bodiless(int32(status)) {
		args.wrong("member %q must be the status of an answer with a whole body, such as 200", "status")
	}
	disposition, _ := args.optionalText("disposition")
	if disposition != "" && disposition != "inline" && disposition != "attachment" {
		args.wrong("member %q must be inline or attachment", "disposition")
	}
	name, named := args.optionalText("name")
	if named {
		if err := schema.CheckFileName(name); err != nil {
			args.wrong("member %q is not the name of a file: it %s", "name", err)
		}
	}
	cache, cached := args.optionalText("cache")
	if err := args.end(); err != nil {
		return nil, err
	}
	r := &c.Response
	switch {
	case c.Preparing():
		return nil, fault.New(fault.Denied, "the initialization cannot answer: call file.send while a request is handled")
	case !c.SendsFiles && !replays:
		return nil, fault.New(fault.Denied, "a file can be the answer to a request alone: a job, a function, a live route and a route with a declared result have another answer")
	case r.Status != 0:
		return nil, invalid("an answer was already sent")
	}
	if cached {
		if errno := c.addHeader([]byte("cache-control"), []byte(cache)); errno != 0 {
			return nil, invalid("member %q is not the value of Cache-Control", "cache")
		}
	}
	for _, own := range [...]string{"content-type", "content-disposition", "x-content-type-options"} {
		r.DeleteHeader(own)
	}
	SendFile(r, int(status), f, disposition, name)
	return struct{}{}, nil
}
