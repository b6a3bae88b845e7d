package host

// Blank is a host with an empty request of which only the body is given, and
// without services. It lets a handler run when there is no request.
type Blank struct{ Given string }

// Method implements Host.
func (Blank) Method() string { return "GET" }

// Path implements Host.
func (Blank) Path() string { return "/" }

// Lookup implements Host.
func (Blank) Lookup(Kind, string) (string, bool) { return "", false }

// Pairs implements Host.
func (Blank) Pairs(Kind) []Pair { return nil }

// Body implements Host.
func (b Blank) Body() []byte { return []byte(b.Given) }

// Read implements Host. The body is at its end: Body has it.
func (Blank) Read([]byte) (int, error) { return 0, nil }

// Context implements Host.
func (Blank) Context() []byte {
	return []byte(
		`{"requestId":"","route":"","deadline":"1970-01-01T00:00:00.000Z","auth":{"kind":"anonymous","roles":[]}}`)
}

// SetHeader implements Host.
func (Blank) SetHeader(string, string) error { return nil }

// Send implements Host.
func (Blank) Send(int, []byte) error { return nil }

// SendError implements Host.
func (Blank) SendError(int, string, string) error { return nil }

// Call implements Host.
func (Blank) Call(string, []byte) error { return &Error{Code: "unavailable"} }

// Start implements Host.
func (Blank) Start(string, []byte) (int, error) { return 0, &Error{Code: "unavailable"} }

// Take implements Host.
func (Blank) Take(int) error { return &Error{Code: "unavailable"} }

// Result implements Host.
func (Blank) Result() ([]byte, error) { return nil, nil }

// SendResult implements Host.
func (Blank) SendResult(int, Part) error { return nil }

// Begin implements Host.
func (Blank) Begin(int) error { return nil }

// Write implements Host. The client is gone, so that a handler ends that would write for ever.
func (Blank) Write([]byte) error { return &Error{Code: "unavailable"} }

// KeepWrites implements Host.
func (Blank) KeepWrites() {}

// Log implements Host.
func (Blank) Log(int, string) {}
