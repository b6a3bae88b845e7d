package front

import "runner.example/internal/fault"

// refusal is what the client gets for a fault's code.
type refusal struct {
	status int
	// detail is the text if the fault has none.
	detail string
	// fixed: detail is always used, so that refusals of this code do not differ.
	fixed bool
}

// refusals has an entry for every code. Codes of failed operations reach a client only when
// the handler did not convert them.
var refusals = map[fault.Code]refusal{
	fault.RouteNotFound:        {404, "no route has this path", false},
	fault.MethodNotAllowed:     {405, "method not supported on this path; Allow lists those that are", false},
	fault.MethodNotImplemented: {501, "method not implemented", false},
	fault.BadPath:              {400, "the path is not in normal form", false},
	fault.InvalidRequest:       {400, "the request is malformed", false},
	fault.HTTPVersion:          {505, "only HTTP/1.1 and HTTP/1.0 are supported", false},
	fault.URITooLong:           {414, "the target of the request is too long", false},
	fault.HeadersTooLarge:      {431, "the headers of the request are too large", false},
	fault.RequestTimeout:       {408, "the request took too long to arrive", false},
	fault.BodyTooLarge:         {413, "the body of the request is too large", false},
	fault.InvalidJSON:          {400, "the body is not JSON", false},
	fault.InvalidInput:         {400, "the body does not match the type of this route", false},
	fault.MissingCredentials:   {401, "this route needs credentials: send Authorization: Bearer <token> or X-API-Key: <token>", false},
	fault.InvalidToken:         {401, "the credential is not valid here", true},
	fault.MissingSignature:     {400, "this route requires a signature", false},
	fault.InvalidSignature:     {401, "the signature does not match the request", false},
	fault.InsufficientScope:    {403, "the credential does not have the scope that this route needs", true},
	fault.InsufficientRole:     {403, "the session has none of the roles that this route needs", true},
	fault.CrossOrigin:          {403, "the request comes from a page of another origin", false},
	fault.RateLimited:          {429, "too many requests: retry after the time in Retry-After", false},
	fault.Overloaded:           {503, "the server is overloaded: retry after the time in Retry-After", false},
	fault.NotReady:             {503, "no release is active", false},
	fault.HandlerFailed:        {500, "the handler failed: the log has the cause under this requestId", false},
	fault.HandlerTimeout:       {504, "the handler took too long", false},
	fault.HandlerOutOfMemory:   {500, "the handler exceeded its memory limit", false},
	fault.HandlerUnavailable:   {503, "the handler keeps exceeding its time: retry after the time in Retry-After", false},
	fault.KeyStoreStale:        {503, "the server has had no connection to its cluster for too long to accept API keys and sessions", false},

	fault.BadRequest:   {400, "bad request", false},
	fault.Unauthorized: {401, "the request needs credentials", false},
	fault.Forbidden:    {403, "the caller may not do this", false},
	fault.Error:        {500, "the request failed", false},

	fault.NotFound:    {404, "not found", false},
	fault.Invalid:     {500, "the handler called an invalid operation", false},
	fault.Denied:      {403, "the caller may not do this", false},
	fault.Conflict:    {409, "the request conflicts with another", false},
	fault.TooLarge:    {500, "the handler exceeded a size limit", false},
	fault.Limit:       {500, "the handler exceeded a limit of the request", false},
	fault.Unavailable: {503, "the store is unavailable", false},
	fault.Deadline:    {500, "an operation of the handler timed out", false},
	fault.Internal:    {500, "internal error: the log has the cause under this requestId", false},
}

// refusalOf returns the row of a code; an unknown code is Internal.
func refusalOf(code fault.Code) refusal {
	if r, ok := refusals[code]; ok {
		return r
	}
	return refusals[fault.Internal]
}

// StatusOf returns the HTTP status of a refusal with the code.
func StatusOf(code fault.Code) int { return refusalOf(code).status }

// detailOf returns the default detail of a code. Handlers may use codes of their own; their
// detail says only that the request failed.
func detailOf(code string) string {
	if r, ok := refusals[fault.Code(code)]; ok {
		return r.detail
	}
	return refusals[fault.Error].detail
}
