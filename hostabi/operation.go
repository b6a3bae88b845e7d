package hostabi

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"unicode/utf8"

	"runner.example/hostabi/abi"
	"runner.example/internal/diag"
	"runner.example/internal/fault"
	"runner.example/state/entity"
)

// operation is one service operation of call. All of its arguments are checked before it
// does anything, so a call with an invalid argument changes nothing.
type operation struct {
	// countsAsStoreOp: it counts as a store operation of the run.
	countsAsStoreOp bool
	// changes: it writes rows or sends something, which a run that only reads may not.
	changes bool
	// readsClock: what it answers depends on the time.
	readsClock bool
	// maxArguments is the limit of its arguments in bytes; 0 means maxArgumentBytes.
	maxArguments int
	// run appends the result to out.JSON[:0]. The arguments are guest memory, valid until
	// it returns.
	run func(c *Call, name string, args []byte, out *entity.Result) error
	// begin replaces run in an operation that waits. It reads the arguments; the work that
	// it returns does the rest.
	begin func(c *Call, args []byte) (work, error)
}

var operationTable = map[string]operation{
	"query":     {countsAsStoreOp: true, run: runRowOperation},
	"get":       {countsAsStoreOp: true, run: runRowOperation},
	"count":     {countsAsStoreOp: true, run: runRowOperation},
	"aggregate": {countsAsStoreOp: true, run: runRowOperation},
	"insert":    {countsAsStoreOp: true, changes: true, run: runRowOperation, maxArguments: maxRowBytes},
	"update":    {countsAsStoreOp: true, changes: true, run: runRowOperation, maxArguments: maxRowBytes},
	"delete":    {countsAsStoreOp: true, changes: true, run: runRowOperation},

	"apiKeys.create": {countsAsStoreOp: true, changes: true, run: withArguments(createAPIKey)},
	"apiKeys.get":    {countsAsStoreOp: true, readsClock: true, run: withArguments(getAPIKey)},
	"apiKeys.list":   {countsAsStoreOp: true, readsClock: true, run: withArguments(listAPIKeys)},
	"apiKeys.rotate": {countsAsStoreOp: true, changes: true, run: withArguments(rotateAPIKey)},
	"apiKeys.revoke": {countsAsStoreOp: true, changes: true, run: withArguments(revokeAPIKey)},

	"sessions.create":    {countsAsStoreOp: true, changes: true, run: withArguments(createSession)},
	"sessions.list":      {countsAsStoreOp: true, readsClock: true, run: withArguments(listSessions)},
	"sessions.revoke":    {countsAsStoreOp: true, changes: true, run: withArguments(revokeSession)},
	"sessions.revokeAll": {countsAsStoreOp: true, changes: true, run: withArguments(revokeSessions)},

	"request.form": {run: withArguments(requestForm)},
	"file.create":  {changes: true, run: withArguments(createFile), maxArguments: maxDataBytes},
	"file.open":    {changes: true, run: withArguments(beginFile)},
	"file.write":   {changes: true, run: withArguments(writeFilePart), maxArguments: maxDataBytes},
	"file.end":     {changes: true, run: withArguments(endFile)},
	"file.read":    {run: readFilePart},
	"file.send":    {run: withArguments(sendFile)},
	"file.sign":    {run: withArguments(signFile)},

	"jobs.enqueue": {countsAsStoreOp: true, changes: true, run: withArguments(enqueueJob), maxArguments: maxDataBytes},
	"jobs.cancel":  {countsAsStoreOp: true, changes: true, run: withArguments(cancelJob)},

	"webhooks.verify": {readsClock: true, run: withArguments(verifyWebhook)},

	"secret":             {run: withArguments(readSecret)},
	"var":                {run: withArguments(readVar)},
	"digest":             {run: withArguments(digest), maxArguments: maxDataBytes},
	"hmac":               {run: withArguments(sign), maxArguments: maxDataBytes},
	"timingSafeEqual":    {run: withArguments(timingSafeEqual), maxArguments: maxDataBytes},
	"crypto.importKey":   {run: runWebCrypto, maxArguments: maxDataBytes},
	"crypto.exportKey":   {run: runWebCrypto, maxArguments: maxDataBytes},
	"crypto.generateKey": {begin: generateKey},
	"crypto.sign":        {run: runWebCrypto, maxArguments: maxDataBytes},
	"crypto.verify":      {run: runWebCrypto, maxArguments: maxDataBytes},
	"crypto.encrypt":     {run: runWebCrypto, maxArguments: maxDataBytes},
	"crypto.decrypt":     {run: runWebCrypto, maxArguments: maxDataBytes},
	"crypto.deriveBits":  {run: runWebCrypto, maxArguments: maxDataBytes},
	"password.hash":      {begin: hashPassword},
	"password.verify":    {begin: verifyPassword},
	"password.scrypt":    {begin: derivePassword},
	"domainToASCII":      {run: withArguments(domainToASCII)},
	"collation":          {run: withArguments(collationAt)},
	"encoding.decode":    {run: withArguments(decodeText), maxArguments: maxDataBytes},
	"compression.open":   {run: withArguments(openStream)},
	"compression.write":  {run: withArguments(writeStream), maxArguments: maxDataBytes},
	"compression.close":  {run: withArguments(closeStream)},
	"timeZone":           {run: withArguments(timeZone)},
	"problem":            {run: withArguments(answerProblem)},
	"fetch":              {changes: true, begin: fetch, maxArguments: maxDataBytes},
	"fetch.read":         {begin: readBody},
	"fetch.close":        {run: withArguments(closeBody)},
	"sleep":              {begin: sleep},
}

// withArguments makes the run of an operation of a function that gets the members of the
// arguments, and whose answer is written as JSON.
func withArguments(run func(c *Call, args *arguments) (any, error)) func(*Call, string, []byte, *entity.Result) error {
	return func(c *Call, _ string, args []byte, out *entity.Result) error {
		in, err := readArguments(args, &c.work)
		if err != nil {
			return err
		}
		answer, err := run(c, in)
		if err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		*out = entity.Result{JSON: append(out.JSON[:0], text...)}
		return err
	}
}

const (
	maxOpBytes       = 64
	maxArgumentBytes = 256 << 10
	maxDataBytes     = 2 << 20 // of operations with data: 1 MiB of it as base64, and the other arguments
	maxRowBytes      = 8 << 20 // of operations with rows: one of 1 MiB whose text is all escaped, or several
)

// call runs one operation. call_result reads its result or its error.
func call(c *Call, g guest) int32 {
	name, op, args, err := c.readOperation(g)
	if err == nil {
		err = c.countStoreOp(op)
	}
	if c.Recorder == nil && c.Player == nil {
		return c.runCall(name, op, args, err)
	}
	return c.tapeCall(name, op, args, err)
}

func (c *Call) runCall(name string, op operation, args []byte, err error) int32 {
	if err != nil {
		return c.fail("", err)
	}
	if op.begin != nil {
		t := c.pendingOps().start(name)
		c.begin(t, op, args)
		return c.take(t)
	}
	if err := c.perform(op, name, args, &c.result); err != nil {
		c.checkTime() // the request's time may have ended it
		return c.fail(name, err)
	}
	c.called, c.succeeded, c.unread = true, true, 0
	c.lastError.isLast = false
	return int32(len(c.result.JSON))
}

// readOperation reads the parameters of call and call_start. The arguments are guest memory.
func (c *Call) readOperation(g guest) (string, operation, []byte, error) {
	name, ok1 := g.bytes(0)
	args, ok2 := g.bytes(2)
	op, known := operation{}, false
	if len(name) <= maxOpBytes {
		op, known = c.Host.lookUp(name)
	}
	switch {
	case len(name) > maxOpBytes: // before it is read
		return "", op, nil, fault.New(fault.TooLarge, "the name of the operation is longer than %d bytes", maxOpBytes)
	case !ok1 || !ok2 || !utf8.Valid(name):
		return "", op, nil, fault.New(fault.Invalid,
			"the operation or its arguments are outside of memory, or the operation is not text")
	case len(args) > cmp.Or(op.maxArguments, maxArgumentBytes):
		return "", op, nil, fault.New(fault.TooLarge, "the arguments of %s are %d KiB; the limit is %d KiB",
			name, (len(args)+1023)>>10, cmp.Or(op.maxArguments, maxArgumentBytes)>>10)
	case !c.countMoved(len(name) + len(args)):
		return "", op, nil, errMoved
	case c.ReadOnly && op.changes:
		return "", op, nil, fault.New(fault.Denied, "%s: a live route only reads: it writes nothing, enqueues no job and sends no request", name)
	case !known:
		return "", op, nil, fault.New(fault.Invalid, "unknown operation %q%s",
			name, diag.DidYouMean(string(name), operationNames()))
	}
	c.readsClock = c.readsClock || op.readsClock
	return string(name), op, args, nil
}

// countStoreOp counts a store operation against its limit.
func (c *Call) countStoreOp(op operation) error {
	if !op.countsAsStoreOp {
		return nil
	}
	if c.storeOps++; c.storeOps > c.limits.StoreOps {
		return fault.New(fault.Limit, "a request may use the store at most %d times", c.limits.StoreOps)
	}
	return nil
}

func operationNames() []string {
	var names []string
	for _, op := range abi.Ops() {
		names = append(names, op.Name)
	}
	return names
}

// fail makes err the result of a call and returns its errno. op is the operation, or empty
// if it is not known.
func (c *Call) fail(op string, err error) int32 {
	f := fault.Of(err)
	errno := Errno(f.Code)
	message := f.Detail
	if errno == abi.Internal {
		c.logInternal(op, err)
		message = "the host failed; its log says more under this request's id"
	} else if op != "" && message != "" {
		message = op + ": " + message
	}
	return c.failWith(op, f, message)
}

// failWith is fail with the message that the guest reads.
func (c *Call) failWith(op string, f *fault.Fault, message string) int32 {
	errno := Errno(f.Code)
	c.keepError(op, f, message)
	text, err := json.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Entity  string `json:"entity,omitzero"`
		Field   string `json:"field,omitzero"`
	}{errno.String(), message, f.Subject.Entity, f.Subject.Field})
	if err != nil {
		text = nil // strings are always JSON
	}
	c.result = entity.Result{JSON: append(c.result.JSON[:0], text...)}
	c.called, c.succeeded, c.unread = true, false, len(text)
	return int32(errno)
}

// refuse makes the spent budget the result of a call, or of call_result. The text is written
// only once, because a guest may continue to call.
func (c *Call) refuse() {
	switch {
	case c.refused:
		c.unread = len(c.result.JSON)
	case c.hostCalls > c.limits.HostCalls:
		c.fail("", fault.New(fault.Limit, "a request may call the host at most %d times", c.limits.HostCalls))
	default:
		c.fail("", errMoved)
	}
	c.refused = true
}

var errMoved = fault.New(fault.Limit, "the request has moved too many bytes between handler and host")

// logInternal logs an error that is not the guest's.
func (c *Call) logInternal(act string, err error) abi.Errno {
	attrs := []slog.Attr{slog.String("operation", act), slog.Any("error", err)}
	if c.Request != nil { // a program that starts has none
		attrs = append(attrs, c.Request.LogID())
	}
	c.Host.Logger.LogAttrs(context.Background(), slog.LevelError, "host call failed", attrs...)
	return abi.Internal
}

func callResult(c *Call, g guest) int32 {
	room, ok := g.bytes(1)
	switch {
	case !ok:
		return int32(abi.Invalid)
	case !c.called:
		return int32(abi.NotFound)
	case c.unread > 0 && g.number(0) >= 0: // neither a call nor moved bytes
		rest := c.result.JSON[min(int(g.number(0)), len(c.result.JSON)):]
		c.unread = max(0, c.unread-min(len(room), len(rest)))
		c.copy(room, rest)
		return int32(len(rest))
	}
	n := c.copyPiece(room, c.result.JSON, g.number(0))
	if n == int32(abi.Limit) {
		c.refuse()
	}
	return n
}
