package abi

// Version is the version of the ABI. A module for a later one that imports a function that
// does not exist here is refused with that name.
const Version = 1

// Module is the name that guests import the host's functions from.
const Module = "runner"

// Kind is the type of a parameter of a host function. In the module's signature a Number is
// one i32; the others are two, a pointer and a length.
type Kind uint8

// The kinds of parameters.
const (
	Number Kind = iota // an integer
	Text               // UTF-8 in guest memory: pointer, length
	Bytes              // bytes in guest memory: pointer, length
	Buffer             // a buffer that the host writes to: pointer, capacity
)

// Param is one parameter of a host function.
type Param struct {
	Name string
	Kind Kind
}

// Words returns how many i32 the parameter takes in the module's signature.
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

// Words returns how many i32 the function takes.
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
	buffer := Param{"buf", Buffer}
	name := Param{"name", Text}
	return []Function{
		{"request_method", []Param{buffer}, true, "the method, as received"},
		{"request_path", []Param{buffer}, true, "the raw path without the query"},
		{"request_param", []Param{name, buffer}, true, "one path parameter by name, decoded"},
		{"request_query", []Param{name, buffer}, true, "the first query value of a name, decoded"},
		{"request_header", []Param{name, buffer}, true, "one header by its name in lower case; lines of one name are joined"},
		{"request_pairs", []Param{{"kind", Number}, buffer}, true,
			"all of kind 0 params, 1 query, 2 headers, 3 the query as received, as the value of one pair without a name, 4 headers by byte, in whose values each character is one byte: per pair `u32 nameLen, u32 valueLen, name, value`, little endian, in order of arrival"},
		{"request_body", []Param{{"offset", Number}, buffer}, true, "the exact bytes; returns how many remain from `offset`"},
		{"request_read", []Param{buffer}, true,
			"reads the next bytes of the body, at most `cap`, and returns how many; 0 at its end. On a route with `stream:` it waits until some arrive"},
		{"context", []Param{buffer}, true,
			"JSON: `requestId`, `route`, `scheme` (`http` or `https`, [as the client used it](../proxy.md)), `auth` {`kind`, `userId`, `tenant`, `roles`, `keyId`, `scope`, `capability`, `metadata`, `claims`; only what this caller has}, `deadline`, in a job's run `job` {`id`, `attempt`, `scheduledFor`}, `streamedBody` if the body had not arrived when the handler began"},
		{"response_header", []Param{name, {"value", Text}}, true, "adds one header"},
		{"response_send", []Param{{"status", Number}, {"body", Bytes}}, true,
			"the answer, status 200–599; a second one is `invalid`"},
		{"response_error", []Param{{"status", Number}, {"code", Text}, {"message", Text}}, true,
			"the answer is problem+json made by the host, status 400–599; an empty code becomes the one of the status. An answer that has begun is broken off"},
		{"response_send_result", []Param{{"status", Number}, {"part", Number}}, true,
			"the answer is the result of the last `call`, not copied through guest memory: part 0 all of it, 1 its `rows`, 2 its `row` or the first of its `rows`; `not_found` if a query found no row"},
		{"response_begin", []Param{{"status", Number}}, true,
			"begins an answer in parts, status 200–599: commits the request's transaction and sends the head; each later operation is a transaction of its own"},
		{"response_write", []Param{{"body", Bytes}}, true,
			"sends a part of an answer that has begun, and waits for a slow client; `unavailable` if the client is gone"},
		{"call", []Param{{"op", Text}, {"args", Bytes}}, true,
			"one service operation, JSON in; returns the length of its JSON result, or an errno (the result is then `{code, message}`)"},
		{"call_result", []Param{{"offset", Number}, buffer}, true,
			"reads the last result, or the error's `{code, message}`; returns how many bytes remain from `offset`"},
		{"call_start", []Param{{"op", Text}, {"args", Bytes}}, true,
			"starts an operation and returns its ticket, 0 or more, at once; an operation that does not wait is completed before"},
		{"call_wait", nil, true,
			"waits until a started operation is completed and returns its ticket, each once; `not_found` when there is none"},
		{"call_take", []Param{{"ticket", Number}}, true,
			"waits for a started operation and returns what `call` would have, once; `call_result` then reads the result"},
		{"request_next", []Param{{"handlers", Text}}, true,
			"waits for the next request, and returns the index of its handler in `handlers`, names in lines; without names the module is the one handler. The first call ends the start of a program, the second one a request"},
		{"keep_writes", nil, false, "commits this request's writes with any status of the answer"},
		{"log", []Param{{"level", Number}, {"text", Text}}, false,
			"0 debug, 1 info, 2 warn, 3 error, 4 why the handler fails; bounded per request"},
	}
}

// Op is one operation of call.
type Op struct {
	Name string
	// Args and Result are the shapes of the JSON. A name with "?" may be absent or
	// null; others are required.
	Args, Result string
}

// Ops returns all operations of call, in the order in which they are
// documented.
func Ops() []Op {
	return []Op{
		{"query", `{"from","select"?,"where"?,"orderBy"?,"limit"?,"cursor"?,"include"?}`, `{"rows":[…],"nextCursor"}`},
		{"get", `{"from","id","select"?,"include"?}`, `{"row":{…}}`},
		{"count", `{"from","where"?,"atMost"?}`, `{"count","more"?}`},
		{"aggregate", `{"from","where"?,"groupBy"?,"count"?,"sum"?,"avg"?,"min"?,"max"?}`, `{"rows":[…]}`},
		{"insert", `{"into","values"}`, `{"rows":[…]}`},
		{"update", `{"in","set","where","limit"?}`, `{"count","more"?,"rows":[…]}`},
		{"delete", `{"from","where","limit"?}`, `{"count","more"?}`},
		{"request.form", `{}`, `{"fields":[[name,value],…],"files":[{"field","id","name","type","size","sha256","declared"},…]}`},
		{"file.create", `{"name","type"?,"data"}`, `{"id","name","type","size","sha256"}`},
		{"file.open", `{"name","type"?}`, `{"writer"}`},
		{"file.write", `{"writer","data"}`, `{}`},
		{"file.end", `{"writer"}`, `{"id","name","type","size","sha256"}`},
		{"file.read", `{"id","offset"?,"length"?}`, `{"data","end"?}`},
		{"file.send", `{"id","status"?,"disposition"?,"name"?,"cache"?}`, `{}`},
		{"file.sign", `{"id","expires","disposition"?,"name"?}`, `{"url"}`},
		{"apiKeys.create", `{"scope","name"?,"expiresIn"?,"metadata"?}`, "the key object with its `token`"},
		{"apiKeys.get", `{"id"}`, "the key object"},
		{"apiKeys.list", `{"scope"?,"limit"?,"cursor"?}`, `{"keys":[…],"nextCursor"}`},
		{"apiKeys.rotate", `{"id","gracePeriod"?}`, "the key object with its new `token`"},
		{"apiKeys.revoke", `{"id"}`, "the key object"},
		{"sessions.create", `{"userId","tenant"?,"roles"?,"ttl"?}`, `{"id","expiresAt"}`},
		{"sessions.list", `{"user"?,"tenant"?,"allTenants"?,"limit"?,"cursor"?}`, `{"sessions":[…],"nextCursor"}`},
		{"sessions.revoke", `{"id"?}`, `{"id"}`},
		{"sessions.revokeAll", `{"user"?,"tenant"?,"allTenants"?,"except"?}`, `{"count"}`},
		{"webhooks.verify", `{"scheme","secret"}`, `{"id","timestamp"}`},
		{"jobs.enqueue", `{"name","params"?,"delay"?,"at"?,"key"?}`, `{"id","created"}`},
		{"jobs.cancel", `{"id"}`, `{"cancelled"}`},
		{"secret", `{"name"}`, `{"value"}`},
		{"var", `{"name"}`, `{"value"}`},
		{"digest", `{"algorithm","data"}`, `{"hex","base64"}`},
		{"hmac", `{"algorithm","secret" or "key","data"}`, `{"hex","base64"}`},
		{"timingSafeEqual", `{"a","b"}`, `{"equal"}`},
		{"crypto.importKey", `{"format","data" or "jwk","algorithm":{…},"extractable"?,"usages"?}`,
			"the key: `{\"type\",\"algorithm\",\"usages\",\"data\"}`"},
		{"crypto.exportKey", `{"format","key":{…}}`, `{"base64"}, or {"jwk":{…}}`},
		{"crypto.generateKey", `{"algorithm":{…},"usages"}`, `{"key":{…}}, or {"publicKey":{…},"privateKey":{…}}`},
		{"crypto.sign", `{"algorithm":{…},"key":{…},"data"}`, `{"base64"}`},
		{"crypto.verify", `{"algorithm":{…},"key":{…},"signature","data"}`, `{"valid"}`},
		{"crypto.encrypt", `{"algorithm":{…},"key":{…},"data"}`, `{"base64"}`},
		{"crypto.decrypt", `{"algorithm":{…},"key":{…},"data"}`, `{"base64"}`},
		{"crypto.deriveBits", `{"algorithm":{…},"key":{…},"length"}`, `{"base64"}`},
		{"password.hash", `{"password"}`, `{"hash"}`},
		{"password.verify", `{"password","hash"?}`, `{"valid","rehash"}`},
		{"password.scrypt", `{"password","salt","n","r","p","length"}`, `{"base64"}`},
		{"domainToASCII", `{"domain"}`, `{"ascii"}`},
		{"collation", `{"at"}`, `{"from","to","rank"?,"elements"?,"contractions"?,"classes"?}`},
		{"encoding.decode", `{"encoding","data","state"?,"more"?,"fatal"?}`, `{"encoding","text"?,"state"}`},
		{"compression.open", `{"format","decompress"?}`, `{"stream"}`},
		{"compression.write", `{"stream","data"?,"end"?}`, `{"data","more"?}`},
		{"compression.close", `{"stream"}`, `{}`},
		{"timeZone", `{"zone","at"}`, `{"zone","offset","abbreviation","from","until"}`},
		{"fetch", `{"method"?,"url","headers"?:[[name,value],…],"body"?,"timeout"?,"redirect"?,"publicOnly"?,"headerBytes"?,"stream"?}`,
			`{"status","url"?,"headers":[[name,value],…],"body" or "stream"}`},
		{"fetch.read", `{"stream","whole"?}`, `{"data","end"?}`},
		{"fetch.close", `{"stream"}`, `{}`},
		{"sleep", `{"seconds"}`, `{}`},
		{"problem", `{"status","code"?,"detail"?,"members"?}`, `{}`},
	}
}

// Errno is an error as a guest sees it: a negative number in place of a length or 0. A later
// version may have further numbers; a guest treats them as Internal.
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
		{NotFound, "not_found", "absent, or hidden from the caller"},
		{Invalid, "invalid", "argument, pointer or JSON"},
		{Denied, "denied", "grant, policy, not declared, not allowed here"},
		{Conflict, "conflict", "unique, state"},
		{TooLarge, "too_large", "over a size limit"},
		{Limit, "limit", "a budget of the request is spent"},
		{Unavailable, "unavailable", "store, network"},
		{Deadline, "deadline", "the operation's own time"},
		{Internal, "internal", "an error of the host; its log has the cause"},
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
	// PairsRawQuery is one pair without a name, whose value is the query as received, without
	// its "?". A target without "?" has none.
	PairsRawQuery = 3
	// PairsHeaderBytes are the headers with values whose characters are bytes, as those of ISO
	// 8859-1. In PairsHeaders such a value is UTF-8 if it can be.
	PairsHeaderBytes = 4
)
