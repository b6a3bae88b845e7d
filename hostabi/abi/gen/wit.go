package main

import (
	"fmt"

	"strings"

	"runner.example/hostabi/abi"
)

// witWords are the names that WIT has a meaning for.
var witWords = map[string]bool{"list": true, "result": true, "type": true, "use": true, "from": true, "import": true, "export": true}

// witAbout says what the interfaces of operations are for. They are written in this order.
var witAbout = [][2]string{
	{"rows", "The rows of the schema's entities: docs/abi/rows.md."},
	{"file", "Files, and the forms that upload them: docs/abi/files.md."},
	{"api-keys", "API keys: docs/abi/credentials.md."},
	{"sessions", "Sessions: docs/abi/credentials.md."},
	{"webhooks", "Signatures of webhooks: docs/abi/credentials.md."},
	{"jobs", "Jobs: docs/abi/operations.md."},
	{"config", "Secrets and variables of the schema: docs/abi/operations.md."},
	{"outbound", "Requests to other services: docs/abi/fetch.md."},
	{"text", "The order of texts: docs/abi/operations.md."},
	{"encoding", "Text in legacy encodings: docs/abi/operations.md."},
	{"compression", "Compressed data: docs/abi/operations.md."},
	{"time", "Time zones and timers: docs/abi/operations.md. wasi:clocks has the clocks."},
	{"answers", "Errors with a code of the handler's own: docs/abi/operations.md. What the handler returns then is not sent."},
	{"password", "Hashes of passwords: docs/abi/cryptography.md."},
	{"crypto", "Digests, and keys of Web Cryptography: docs/abi/cryptography.md. wasi:random has random bytes."},
}

// witFunctions says where runner:app has the functions of the module "runner".
var witFunctions = map[string]string{
	"request_method": "types.request", "request_path": "types.request", "request_param": "types.request",
	"request_query": "types.request", "request_header": "types.request", "request_pairs": "types.request",
	"request_body": "types.request", "request_read": "", "context": "current-request.context", "keep_writes": "current-request.keep-writes",
	"response_header": "types.response", "response_send": "types.body", "response_error": "types.body",
	"response_send_result": "types.body", "response_begin": "", "response_write": "", "call": "operations.call", "call_result": "operations.last-result",
	"call_start": "operations.start", "call_wait": "operations.wait", "call_take": "operations.take",
	"request_next": "", // of programs
	"log":          "logging.log",
}

const witHead = `// Generated from hostabi/abi by go generate; do not edit.

/// The functions of the runner for components, in any language: the guest ABI, version %d. docs/wit.md has examples.
/// Arguments and results of operations are JSON. Their checks, errors and limits are those of docs/abi.
package %s@%s;

/// What functions and handlers pass.
interface types {
  /// A value as JSON.
  type json = string;

  /// Why something failed.
  enum code {
%s  }

  record error {
    code: code,
    message: string,
    /// The operation that failed, such as "insert"; empty: another function.
    operation: string,
  }

  /// A name and a value.
  type pair = tuple<string, string>;

  /// What a handler is called with. Bytes that are not UTF-8 are U+FFFD in texts.
  record request {
    /// The method, as received.
    method: string,
    /// The raw path without the query.
    path: string,
    /// The parameters in the path, decoded.
    params: list<pair>,
    /// All values of the query, decoded, in order of arrival.
    query: list<pair>,
    /// Names are in lower case; lines of one name are joined. A value that is not UTF-8 is read as ISO 8859-1.
    headers: list<pair>,
    /// The exact bytes.
    body: list<u8>,
  }

  /// An answer. Without a header content-type, a body is application/json.
  record response {
    /// From 200 to 599; of a problem, from 400.
    status: u16,
    headers: list<pair>,
    body: body,
  }

  variant body {
    bytes(list<u8>),
    text(string),
    /// The result of the last operation, not copied through the component.
    last-result(part),
    /// The host makes application/problem+json of it.
    problem(problem),
  }

  enum part {
    all,
    /// Its "rows".
    rows,
    /// Its "row", or the first of its "rows"; without one the answer is 404.
    row,
  }

  record problem {
    /// In snake_case; an empty one becomes that of the status.
    code: string,
    message: string,
  }
}

/// The request that runs.
interface current-request {
  use types.{json, pair, error};

  /// The caller, the route and the deadline, as the function context of docs/abi/functions.md.
  context: func() -> result<json, error>;
  /// The parameters in the path. Handlers of runner:app have them in their request.
  params: func() -> result<list<pair>, error>;
  /// The query as it was sent, without its "?"; none: the target has no "?".
  raw-query: func() -> result<option<string>, error>;
  /// Commits this request's writes with any status of the answer.
  keep-writes: func();
}

interface logging {
  enum level {
    debug,
    info,
    warn,
    error,
    /// A report of why the handler fails.
    failure,
  }

  /// Writes a line to the log; bounded per request.
  log: func(level: level, text: string);
}

/// Operations by name, also several at once.
interface operations {
  use types.{json, error};

  /// Runs an operation, and returns the length of its result.
  call: func(operation: string, args: json) -> result<u32, error>;
  /// The result of the last operation, or of the last ticket that was taken.
  last-result: func() -> result<json, error>;
  /// Starts an operation, and returns its ticket at once.
  start: func(operation: string, args: json) -> result<u32, error>;
  /// Waits until a started operation is completed, and returns its ticket, each once; none if there is none.
  wait: func() -> result<option<u32>, error>;
  /// Waits for a started operation, and returns what call would have, once.
  take: func(ticket: u32) -> result<u32, error>;
}
`

// wit is the package runner:app. Each function of the ABI is a part of it.
func wit() (string, error) {
	for _, f := range abi.Functions() {
		if _, ok := witFunctions[f.Name]; !ok {
			return "", fmt.Errorf("function %s has no place in runner:app: add it to witFunctions and witHead", f.Name)
		}
	}
	var codes, b strings.Builder
	for _, e := range abi.Errnos() {
		fmt.Fprintf(&codes, "    /// %s\n    %s,\n", e.Doc, e.Kebab())
	}
	fmt.Fprintf(&b, witHead, abi.Version, abi.WITPackage, abi.WITVersion, codes.String())
	world := "  import types;\n  import current-request;\n  import logging;\n  import operations;\n"
	placed := 0
	for _, about := range witAbout {
		world += "  import " + about[0] + ";\n"
		fmt.Fprintf(&b, "\n/// %s\ninterface %s {\n  use types.{json, error};\n", about[1], about[0])
		for _, op := range abi.Ops() {
			in, name, err := op.WIT()
			switch {
			case err != nil:
				return "", err
			case in != about[0]:
				continue
			case witWords[name]:
				name = "%" + name
			}
			placed++
			fmt.Fprintf(&b, "\n  /// %s\n  /// -> %s\n  %s: func(args: json) -> result<json, error>;\n", op.Args, op.Result, name)
		}
		b.WriteString("}\n")
	}
	if placed != len(abi.Ops()) {
		return "", fmt.Errorf("%d of %d operations are in an interface of witAbout", placed, len(abi.Ops()))
	}
	b.WriteString("\n/// All functions. A component includes it, and exports a function for each handler:\n")
	b.WriteString("///   export list-orders: func(request: request) -> result<response, error>;\n")
	b.WriteString("/// In the schema it is listOrders or list_orders.\n")
	fmt.Fprintf(&b, "world handlers {\n%s}\n", world)
	return b.String(), nil
}
