package abi

// Pair is one name with its value. Both are views of the Request's own buffer.
type Pair struct{ Name, Value []byte }

// Request is one HTTP request as a handler sees it. Everything it points to
// belongs to the request and is valid until Reset; a handler run again for the
// same request reads the same bytes, so nothing may write to them.
type Request struct {
	// ID is made by the host: a lower-case ULID.
	ID string
	// Method and Path are as they came; Path is the raw target without the query.
	Method, Path []byte
	// Route is the template of the matched route: "/v1/orders/:id".
	Route string
	// Params are percent-decoded, in order of the path.
	Params []Pair
	// Query holds all decoded pairs in order of arrival.
	Query []Pair
	// Headers are in order of arrival, lower-case, lines of one name joined.
	Headers []Pair
	// Body is the exact body.
	Body []byte
}

// Response is a handler's answer, filled in by host calls. The zero value is
// "no answer yet" (Status 0). Its bytes are its own: they outlive the sandbox.
type Response struct {
	Status int
	// Code and Detail are set when the answer is an error helper's: front
	// makes problem+json from them, and Body is empty.
	Code, Detail string
	Headers      []Pair
	Body         []byte
}
