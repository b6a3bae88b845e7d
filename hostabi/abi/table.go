package abi

// Version is the version of the agreement. A module built for another one
// imports a function that does not exist here, and is refused by that name.
const Version = 1

// Module is the name that guests import the host's functions from.
const Module = "runner"

// Kind is what a parameter of a host function means. In the module's signature
// a Number is one i32, everything else is two: where and how long.
type Kind uint8

// The kinds of parameters.
const (
	Number Kind = iota // a plain number
	Text               // UTF-8 in guest memory: pointer, length
	Bytes              // bytes in guest memory: pointer, length
	Room               // where the host may write: pointer, capacity
)

// Param is one parameter of a host function.
type Param struct {
	Name string
	Kind Kind
}

// Words is how many i32 the parameter takes in the module's signature.
func (p Param) Words() int {
	if p.Kind == Number {
		return 1
	}
	return 2
}

// Function is one function of the module "runner".
type Function struct {
	Name   string
	Params []Param
	// Result: the function returns an i32, a count or a negative Errno.
	Result bool
	Doc    string
}

// Words is how many i32 the function takes.
func (f Function) Words() int {
	n := 0
	for _, p := range f.Params {
		n += p.Words()
	}
	return n
}

// Functions returns all functions of the module "runner", in the order in which
// they are documented.
func Functions() []Function {
	room := Param{"buf", Room}
	name := Param{"name", Text}
	return []Function{
		{"request_method", []Param{room}, true, "the method, as it came"},
		{"request_path", []Param{room}, true, "the raw path without the query"},
		{"request_param", []Param{name, room}, true, "one path parameter by name, decoded"},
		{"request_query", []Param{name, room}, true, "the first query value of a name, decoded"},
		{"request_header", []Param{name, room}, true, "one header by its name in lower case; lines of one name are joined"},
		{"request_pairs", []Param{{"kind", Number}, room}, true,
			"all of kind 0 params, 1 query, 2 headers: per pair `u32 nameLen, u32 valueLen, name, value`, little endian, in order of arrival"},
		{"request_body", []Param{{"offset", Number}, room}, true, "the exact bytes; returns how many remain from `offset`"},
		{"context", []Param{room}, true,
			"JSON: `requestId`, `route`, `auth` {`kind`, `userId`, `tenant`, `roles`, `keyId`, `scope`, `capability`, `metadata`, `claims`; only what this caller has}, `deadline`"},
		{"response_header", []Param{name, {"value", Text}}, true, "adds one header"},
		{"response_send", []Param{{"status", Number}, {"body", Bytes}}, true, "the answer, status 200–599; a second one is `invalid`"},
		{"response_error", []Param{{"status", Number}, {"code", Text}, {"message", Text}}, true,
			"the answer is problem+json made by the host, status 400–599; an empty code becomes the one of the status"},
		{"response_send_result", []Param{{"status", Number}, {"part", Number}}, true,
			"the answer is the last `call`'s result without a trip through guest memory: part 0 all of it, 1 its `rows`, 2 its `row` or the first of its `rows`; `not_found` when there is none"},
		{"call", []Param{{"op", Text}, {"args", Bytes}}, true,
			"one service operation, JSON in; returns the length of its JSON result, or an errno (the result is then `{code, message}`)"},
		{"call_result", []Param{{"offset", Number}, room}, true,
			"reads the last result, or the error's `{code, message}`; returns how many bytes remain from `offset`"},
		{"call_start", []Param{{"op", Text}, {"args", Bytes}}, true,
			"as `call`, for operations that wait: a ticket, 0 or more, at once; what does not wait is done then"},
		{"call_wait", nil, true,
			"waits until one of the operations that were started is done and returns its ticket, each once; `not_found` when there is none"},
		{"call_take", []Param{{"ticket", Number}}, true,
			"what `call` would have returned, once; waits for it when there is nothing yet; `call_result` then reads it"},
		{"keep_writes", nil, false, "commit this request's writes whatever status it answers"},
		{"log", []Param{{"level", Number}, {"text", Text}}, false, "0 debug, 1 info, 2 warn, 3 error; bounded per request"},
	}
}

// Op is one operation of call.
type Op struct {
	Name string
	// Args and Result are the shapes of the JSON: a name alone is required, one
	// with "?" may be left out or null.
	Args, Result string
}

// Ops returns all operations of call, in the order in which they are
// documented.
func Ops() []Op {
	return []Op{
		{"query", `{"from","select"?,"where"?,"orderBy"?,"limit"?,"cursor"?}`, `{"rows":[…],"nextCursor"}`},
		{"get", `{"from","id","select"?}`, `{"row":{…}}`},
		{"count", `{"from","where"?}`, `{"count"}`},
		{"insert", `{"into","values"}`, `{"rows":[…]}`},
		{"update", `{"in","set","where"}`, `{"count","rows":[…]}`},
		{"delete", `{"from","where"}`, `{"count"}`},
		{"apiKeys.create", `{"scope","name"?,"expiresIn"?,"metadata"?}`, "the key object with its `token`"},
		{"apiKeys.get", `{"id"}`, "the key object"},
		{"apiKeys.list", `{"scope"?,"limit"?,"cursor"?}`, `{"keys":[…],"nextCursor"}`},
		{"apiKeys.rotate", `{"id","gracePeriod"?}`, "the key object with its new `token`"},
		{"apiKeys.revoke", `{"id"}`, "the key object"},
		{"sessions.create", `{"userId","tenant"?,"roles"?,"ttl"?}`, `{"id","expiresAt"}`},
		{"sessions.revoke", `{"id"?}`, `{"id"}`},
		{"webhooks.verify", `{"scheme","secret"}`, `{"id","timestamp"}`},
		{"secret", `{"name"}`, `{"value"}`},
		{"digest", `{"algorithm","data"}`, `{"hex","base64"}`},
		{"hmac", `{"algorithm","secret" or "key","data"}`, `{"hex","base64"}`},
		{"timingSafeEqual", `{"a","b"}`, `{"equal"}`},
		{"fetch", `{"method"?,"url","headers"?:[[name,value],…],"body"?,"timeout"?,"redirect"?}`, `{"status","url"?,"headers":[[name,value],…],"body"}`},
		{"sleep", `{"seconds"}`, `{}`},
	}
}

// Errno is a failure as a guest sees it: a negative number where a length or 0
// is expected. Numbers outside the table may come in a later version; a guest
// treats them as Internal.
type Errno int32

// The errnos.
const (
	NotFound    Errno = -1
	Invalid     Errno = -2
	Denied      Errno = -3
	Conflict    Errno = -4
	TooLarge    Errno = -5
	Limit       Errno = -6
	Unavailable Errno = -7
	Deadline    Errno = -8
	Internal    Errno = -9
)

// ErrnoInfo describes one errno.
type ErrnoInfo struct {
	Errno Errno
	Name  string
	Doc   string
}

// Errnos returns all errnos, -1 first.
func Errnos() []ErrnoInfo {
	return []ErrnoInfo{
		{NotFound, "not_found", "absent, or nothing the caller may know of"},
		{Invalid, "invalid", "argument, pointer or JSON"},
		{Denied, "denied", "grant, policy, not declared, not allowed here"},
		{Conflict, "conflict", "unique, state"},
		{TooLarge, "too_large", "over a size limit"},
		{Limit, "limit", "a budget of the request is spent"},
		{Unavailable, "unavailable", "store, network"},
		{Deadline, "deadline", "the operation's own time"},
		{Internal, "internal", "the host's mistake; its log says more"},
	}
}

// String gives the errno's name, "internal" for a number outside the table.
func (e Errno) String() string {
	for _, info := range Errnos() {
		if info.Errno == e {
			return info.Name
		}
	}
	return "internal"
}

// The parts of response_send_result.
const (
	PartAll  = 0
	PartRows = 1
	PartRow  = 2
)

// The kinds of request_pairs.
const (
	PairsParams  = 0
	PairsQuery   = 1
	PairsHeaders = 2
)
