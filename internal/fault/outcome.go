package fault

// Outcome is what others see of a fault with a code: one row of the table. Each column belongs
// to the one package that reads it.
type Outcome struct {
	Code Code
	// HTTP is the status of a refusal on the listener of the app: runtime/front.
	HTTP int
	// Admin is the status of a refusal to an operator, on the admin listener and the admin socket: node/admin/server. 422 stands for codes
	// that say more than a status does.
	Admin int
	// Errno is the code of the same name as the errno of a guest. hostabi/abi has the numbers of
	// the names: hostabi.
	Errno Code
	// Exit is the exit status of a command, a number of internal/console: cmd/runner.
	Exit int
	// Uniform refusals have the Detail of the table only, so that they do not differ: runtime/front.
	Uniform bool
	// Detail is the text for a client, if the fault has none: runtime/front.
	Detail string
}

// outcomes has a row for every code, in the order of declaration. A code that one package does
// not use today has a value for it too, because any package below may return any code.
var outcomes = [...]Outcome{
	// code, HTTP, Admin, Errno, Exit, Uniform, Detail
	{RouteNotFound, 404, 422, NotFound, 1, false, "no route has this path"},
	{MethodNotAllowed, 405, 405, Invalid, 1, false, "method not supported on this path; Allow lists those that are"},
	{MethodNotImplemented, 501, 422, Invalid, 1, false, "method not implemented"},
	{BadPath, 400, 422, Invalid, 1, false, "the path is not in normal form"},
	{InvalidRequest, 400, 400, Invalid, 1, false, "the request is malformed"},
	{HTTPVersion, 505, 422, Invalid, 1, false, "only HTTP/1.1 and HTTP/1.0 are supported"},
	{URITooLong, 414, 422, TooLarge, 1, false, "the target of the request is too long"},
	{HeadersTooLarge, 431, 422, TooLarge, 1, false, "the headers of the request are too large"},
	{RequestTimeout, 408, 422, Deadline, 1, false, "the request took too long to arrive"},
	{BodyTooLarge, 413, 413, TooLarge, 3, false, "the body of the request is too large"},
	{UnsupportedEncoding, 415, 415, Invalid, 3, false, "the body has a Content-Encoding, and this route reads it: send it without one"},
	{PreconditionFailed, 412, 422, Conflict, 1, false, "the content does not meet a condition of the request"},
	{RangeNotSatisfiable, 416, 422, Invalid, 1, false, "the content has none of the bytes that Range asks for; Content-Range has its size"},
	{InvalidJSON, 400, 422, Invalid, 3, false, "the body is not JSON"},
	{InvalidInput, 400, 422, Invalid, 3, false, "the body does not match the type of this route"},
	{MissingCredentials, 401, 401, Denied, 1, false,
		"this route needs credentials: send Authorization: Bearer <token> or X-API-Key: <token>"},
	{InvalidToken, 401, 401, Denied, 1, true, "the credential is not valid here"},
	{MissingSignature, 400, 422, Denied, 1, false, "this route requires a signature"},
	{InvalidSignature, 401, 422, Denied, 1, false, "the signature does not match the request"},
	{InsufficientScope, 403, 422, Denied, 1, true, "the credential does not have the scope that this route needs"},
	{InsufficientRole, 403, 403, Denied, 1, true, "the session has none of the roles that this route needs"},
	{CrossOrigin, 403, 422, Denied, 1, false, "the request comes from a page of another origin"},
	{RateLimited, 429, 429, Limit, 1, false, "too many requests: retry after the time in Retry-After"},
	{Overloaded, 503, 503, Unavailable, 1, false, "the server is overloaded: retry after the time in Retry-After"},
	{NotReady, 503, 503, Unavailable, 1, false, "no release is active"},
	{HandlerFailed, 500, 422, Internal, 1, false, "the handler failed: the log has the cause under this requestId"},
	{HandlerTimeout, 504, 422, Deadline, 1, false, "the handler took too long"},
	{HandlerOutOfMemory, 500, 422, Internal, 1, false, "the handler exceeded its memory limit"},
	{HandlerUnavailable, 503, 422, Unavailable, 1, false,
		"the handler keeps exceeding its time: retry after the time in Retry-After"},
	{KeyStoreStale, 503, 503, Unavailable, 1, false,
		"the server has had no connection to its cluster for too long to accept API keys and sessions"},

	{BadRequest, 400, 422, Invalid, 1, false, "bad request"},
	{Unauthorized, 401, 422, Denied, 1, false, "the request needs credentials"},
	{Forbidden, 403, 422, Denied, 1, false, "the caller may not do this"},
	{Error, 500, 422, Internal, 1, false, "the request failed"},

	{NotFound, 404, 404, NotFound, 4, false, "not found"},
	{Invalid, 500, 400, Invalid, 3, false, "the handler called an invalid operation"},
	{Denied, 403, 403, Denied, 1, false, "the caller may not do this"},
	{Conflict, 409, 409, Conflict, 5, false, "the request conflicts with what is stored"},
	{WriteConflict, 409, 409, Conflict, 5, false, "other requests changed the same data: retry after the time in Retry-After"},
	{TooLarge, 413, 413, TooLarge, 3, false, "a value of the request exceeds a size limit"},
	{Limit, 422, 422, Limit, 3, false, "the request exceeds a limit of an operation"},
	{Unavailable, 503, 503, Unavailable, 6, false, "the store is unavailable"},
	{DiskFull, 503, 503, Unavailable, 1, false, "the store is unavailable"},
	{Deadline, 500, 504, Deadline, 1, false, "an operation of the handler timed out"},
	{Internal, 500, 500, Internal, 1, false, "internal error: the log has the cause under this requestId"},
	{NotActivated, 500, 422, Invalid, 3, false, "the node cannot activate the release; the active one is kept"},
}

var outcomeOf = func() map[Code]*Outcome {
	byCode := make(map[Code]*Outcome, len(outcomes))
	for i := range outcomes {
		byCode[outcomes[i].Code] = &outcomes[i]
	}
	return byCode
}()

// OutcomeOf returns the row of a code. For a code that is not in the table, such as one of a
// handler, it returns the row of Internal, and false.
func OutcomeOf(code Code) (o Outcome, known bool) {
	if row, ok := outcomeOf[code]; ok {
		return *row, true
	}
	return *outcomeOf[Internal], false
}

// All returns every code, in the order of declaration.
func All() []Code {
	all := make([]Code, len(outcomes))
	for i := range outcomes {
		all[i] = outcomes[i].Code
	}
	return all
}
