package hostabi

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf8"

	"runner.example/hostabi/abi"
)

func requestMethod(c *Call, g guest) int32 { return c.giveTo(g, c.Request.Method) }

func requestPath(c *Call, g guest) int32 { return c.giveTo(g, c.Request.Path) }

// giveTo is give for a function whose only parameter is the buffer.
func (c *Call) giveTo(g guest, value []byte) int32 {
	room, ok := g.bytes(0)
	if !ok {
		return int32(abi.Invalid)
	}
	return c.copyOut(room, value)
}

func requestParam(c *Call, g guest) int32 { return c.giveNamed(g, c.Request.Params) }

func requestQuery(c *Call, g guest) int32 { return c.giveNamed(g, c.Request.Query) }

func requestHeader(c *Call, g guest) int32 { return c.giveNamed(g, c.Request.Headers) }

// giveNamed copies the first value of a name.
func (c *Call) giveNamed(g guest, pairs []abi.Pair) int32 {
	name, ok1 := g.bytes(0)
	room, ok2 := g.bytes(2)
	if !ok1 || !ok2 {
		return int32(abi.Invalid)
	}
	if !c.countMoved(len(name)) { // before it is read
		return int32(abi.Limit)
	}
	if !utf8.Valid(name) {
		return int32(abi.Invalid)
	}
	for _, p := range pairs {
		if bytes.Equal(p.Name, name) {
			return c.copyOut(room, abi.HeaderText(p.Value)) // parameters and the query are UTF-8
		}
	}
	return int32(abi.NotFound)
}

// requestPairs writes all pairs:
//
//	u32 len(name) · u32 len(value) · name · value     (little endian)
func requestPairs(c *Call, g guest) int32 {
	room, ok := g.bytes(1)
	if !ok {
		return int32(abi.Invalid)
	}
	var pairs []abi.Pair
	var whole [1]abi.Pair
	kind := g.number(0)
	switch kind {
	case abi.PairsParams:
		pairs = c.Request.Params
	case abi.PairsQuery:
		pairs = c.Request.Query
	case abi.PairsHeaders, abi.PairsHeaderBytes:
		pairs = c.Request.Headers
	case abi.PairsRawQuery:
		if c.Request.RawQuery != nil {
			whole[0].Value = c.Request.RawQuery
			pairs = whole[:]
		}
	default:
		return int32(abi.Invalid)
	}
	size := 0
	for _, p := range pairs {
		size += 8 + len(p.Name) + len(p.Value) + widening(kind, p.Value)
	}
	if size > len(room) {
		return int32(size)
	}
	if !c.countMoved(size) {
		return int32(abi.Limit)
	}
	out := room[:0]
	for _, p := range pairs {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(p.Name)))
		more := widening(kind, p.Value)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(p.Value)+more))
		if out = append(out, p.Name...); more > 0 {
			out = abi.AppendByteText(out, p.Value)
		} else {
			out = append(out, p.Value...)
		}
	}
	return int32(size)
}

// widening returns how much longer a value is as text. Parameters and the query are UTF-8.
func widening(kind int32, value []byte) int {
	if kind == abi.PairsHeaderBytes || kind == abi.PairsHeaders && !utf8.Valid(value) {
		return abi.HighBytes(value)
	}
	return 0
}

func requestBody(c *Call, g guest) int32 {
	room, ok := g.bytes(1)
	if !ok {
		return int32(abi.Invalid)
	}
	body, ok := c.WholeBody()
	if !ok {
		return int32(abi.Invalid)
	}
	return c.copyPiece(room, body, g.number(0))
}

// contextJSON is the result of context: everything that a handler may know of its caller,
// and no credential.
type contextJSON struct {
	RequestID string   `json:"requestId"`
	Route     string   `json:"route"`
	Scheme    string   `json:"scheme"`
	Auth      authJSON `json:"auth"`
	Deadline  string   `json:"deadline,omitempty"`
	Job       *abi.Job `json:"job,omitempty"`
	// StreamedBody: the body has not arrived yet.
	StreamedBody bool `json:"streamedBody,omitempty"`
}

type authJSON struct {
	Kind       string          `json:"kind"`
	UserID     string          `json:"userId,omitempty"`
	Tenant     string          `json:"tenant,omitempty"`
	Roles      []string        `json:"roles,omitempty"`
	KeyID      string          `json:"keyId,omitempty"`
	Scope      string          `json:"scope,omitempty"`
	Capability string          `json:"capability,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Claims     json.RawMessage `json:"claims,omitempty"`
}

func requestContext(c *Call, g guest) int32 {
	if len(c.contextText) == 0 {
		text, err := json.Marshal(c.describe())
		if err != nil {
			return int32(c.logInternal("describe the request's context", err))
		}
		c.contextText = append(c.contextText, text...)
	}
	return c.giveTo(g, c.contextText)
}

func (c *Call) describe() contextJSON {
	d := contextJSON{
		RequestID: c.Request.ID,
		Route:     c.Request.Route,
		Scheme:    "http",
		Job:       c.Request.Job,
		Auth: authJSON{
			Kind:       c.Caller.Kind.String(),
			UserID:     c.Caller.UserID,
			Tenant:     c.Caller.Tenant,
			Roles:      c.Caller.Roles,
			KeyID:      c.Caller.KeyID,
			Scope:      c.Caller.Scope,
			Capability: c.Caller.Capability,
			Metadata:   c.Caller.Metadata,
			Claims:     c.Caller.Claims,
		},
	}
	d.StreamedBody = c.readsParts()
	if c.Request.Secure {
		d.Scheme = "https"
	}
	end, ok := c.Context.Deadline()
	if c.Player != nil {
		end, ok = c.Player.Recording.Deadline, !c.Player.Recording.Deadline.IsZero()
	}
	if ok {
		d.Deadline = end.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return d
}
