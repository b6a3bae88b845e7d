package hostabi

import (
	"errors"

	"runner.example/hostabi/compression"
	"runner.example/hostabi/octets"
	"runner.example/internal/fault"
)

// maxStreamBytes limits the memory that the streams of a run take together.
const maxStreamBytes = 48 << 20

// streams has the open compressed streams of one run, by number. The zero value is ready for use.
type streams struct {
	open   map[int64]*compression.Stream
	opened int64
	memory int
	held   Sandbox // that memory was taken from; nil: none
}

// closeAll frees all streams.
func (s *streams) closeAll() {
	for number := range s.open {
		s.close(number)
	}
	s.opened = 0
}

func (s *streams) close(number int64) {
	if stream := s.open[number]; stream != nil {
		stream.Close()
		s.memory -= stream.Memory()
		if s.held != nil {
			s.held.Release(stream.Memory())
		}
		delete(s.open, number)
	}
}

// openStream begins to compress or to decompress.
func openStream(c *Call, args *arguments) (any, error) {
	format := args.text("format")
	decompress := args.optionalBool("decompress")
	if err := args.end(); err != nil {
		return nil, err
	}
	stream, err := compression.New(format, decompress)
	if err != nil {
		return nil, invalid("%v, not %q", err, shorten(format))
	}
	s := &c.streams
	if s.memory+stream.Memory() > maxStreamBytes {
		stream.Close()
		return nil, fault.New(fault.Limit, "the compressed streams of a request may take %d MiB: end or close one first", maxStreamBytes>>20)
	}
	if c.sandbox != nil && !c.sandbox.Hold(stream.Memory()) {
		stream.Close()
		return nil, fault.New(fault.Unavailable, "the memory of all handlers is used up: another stream needs %d KiB", stream.Memory()>>10)
	}
	s.held = c.sandbox
	if s.open == nil {
		s.open = map[int64]*compression.Stream{}
	}
	s.opened++
	s.open[s.opened] = stream
	s.memory += stream.Memory()
	return struct {
		Stream int64 `json:"stream"`
	}{s.opened}, nil
}

// writeStream writes a piece of input to a stream, and returns output. A stream that has ended or failed is closed.
func writeStream(c *Call, args *arguments) (any, error) {
	number, ok := args.optionalWhole("stream")
	data, _ := args.optionalData("data")
	end := args.optionalBool("end")
	stream := c.streams.open[number]
	if ok && stream == nil {
		args.wrong("member %q is not the number of an open stream", "stream")
	}
	if !ok {
		args.wrong("member %q is missing", "stream")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	out, more, err := stream.Write(data, end, args.meter)
	if errors.Is(err, compression.ErrUnread) {
		return nil, invalid("%v", err)
	}
	if end && !more || err != nil {
		c.streams.close(number)
	}
	switch {
	case args.meter.Err() != nil:
		return nil, args.meter.Err()
	case err != nil:
		return nil, invalid("%v", err)
	}
	return struct {
		Data octets.Bytes `json:"data"`
		More bool         `json:"more,omitzero"`
	}{out, more}, nil
}

// closeStream frees a stream that is not used to its end.
func closeStream(c *Call, args *arguments) (any, error) {
	number, ok := args.optionalWhole("stream")
	if !ok {
		args.wrong("member %q is missing", "stream")
	}
	if err := args.end(); err != nil {
		return nil, err
	}
	c.streams.close(number)
	return struct{}{}, nil
}
