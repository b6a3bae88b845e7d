package front

import "runner.example/internal/fault"

// refusal is what a fault's code becomes for the caller.
type refusal struct {
	status int
	// detail stands where a fault has none.
	detail string
	// fixed says that detail stands always: refusals of one kind must not be
	// told apart.
	fixed bool
}

// refusals has a row for every code there is. Codes of failed operations reach
// a caller only when nobody between has given them a better name.
var refusals = map[fault.Code]refusal{
	fault.RouteNotFound:        {404, "no route has this path", false},
	fault.MethodNotAllowed:     {405, "the path has routes, but none for this method: Allow names theirs", false},
	fault.MethodNotImplemented: {501, "the method is not known here", false},
	fault.BadPath:              {400, "the path is not in plain form", false},
	fault.InvalidRequest:       {400, "the request is malformed", false},
	fault.HTTPVersion:          {505, "only HTTP/1.1 and HTTP/1.0 are spoken here", false},
	fault.URITooLong:           {414, "the target of the request is too long", false},
	fault.HeadersTooLarge:      {431, "the headers of the request are too large", false},
	fault.RequestTimeout:       {408, "the request took too long to arrive", false},
	fault.BodyTooLarge:         {413, "the body of the request is too large", false},
	fault.InvalidJSON:          {400, "the body is not JSON", false},
	fault.InvalidInput:         {400, "the body is not what this route takes", false},
	fault.MissingCredentials:   {401, "this route needs credentials: send Authorization: Bearer <token> or X-API-Key: <token>", false},
	fault.InvalidToken:         {401, "the credential is not valid here", true},
	fault.MissingSignature:     {400, "this route takes signed requests alone", false},
	fault.InvalidSignature:     {401, "the signature does not fit the request", false},
	fault.InsufficientScope:    {403, "the credential does not have the scope that this route needs", true},
	fault.InsufficientRole:     {403, "the session has none of the roles that this route needs", true},
	fault.CrossOrigin:          {403, "the request comes from a page of another origin", false},
	fault.RateLimited:          {429, "too many requests: Retry-After says when to come back", false},
	fault.Overloaded:           {503, "no room for this request at the moment: Retry-After says when to come back", false},
	fault.NotReady:             {503, "there is nothing to serve yet", false},
	fault.HandlerFailed:        {500, "the handler failed: the log has the cause under this requestId", false},
	fault.HandlerTimeout:       {504, "the handler took too long", false},
	fault.HandlerOutOfMemory:   {500, "the handler needed more memory than it may have", false},
	fault.HandlerUnavailable:   {503, "the handler keeps running out of time: Retry-After says when to come back", false},

	fault.BadRequest:   {400, "the request cannot be served as it is", false},
	fault.Unauthorized: {401, "the request needs credentials", false},
	fault.Forbidden:    {403, "the caller may not do this", false},
	fault.Error:        {500, "the request failed", false},

	fault.NotFound:    {404, "not found", false},
	fault.Invalid:     {500, "the handler asked for something invalid", false},
	fault.Denied:      {403, "the caller may not do this", false},
	fault.Conflict:    {409, "the request is in conflict with another", false},
	fault.TooLarge:    {500, "the handler asked for too much", false},
	fault.Limit:       {500, "the handler used up what one request may use", false},
	fault.Unavailable: {503, "the store is not available at the moment", false},
	fault.Deadline:    {500, "an operation of the handler took too long", false},
	fault.Internal:    {500, "something failed here: the log has the cause under this requestId", false},
}

// refusalOf is the row of a code; a code that nobody declared is Internal.
func refusalOf(code fault.Code) refusal {
	if r, ok := refusals[code]; ok {
		return r
	}
	return refusals[fault.Internal]
}

// StatusOf is the status that a refusal with the code has.
func StatusOf(code fault.Code) int { return refusalOf(code).status }

// detailOf is the detail of a code where nobody gave one. A handler may answer
// with a code of its own; of that nothing more is known than that it failed.
func detailOf(code string) string {
	if r, ok := refusals[fault.Code(code)]; ok {
		return r.detail
	}
	return refusals[fault.Error].detail
}
