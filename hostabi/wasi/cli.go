package wasi

import (
	"strings"

	"runner.example/internal/component/canon"
)

var environmentFunctions = map[string]function{
	"get-environment": environment,
	"get-arguments":   arguments,
}

func environment(r *run, _ []any) any {
	all := []any{}
	add := func(v string) {
		name, value, _ := strings.Cut(v, "=")
		all = append(all, []any{name, strings.ToValidUTF8(value, "\ufffd")})
	}
	if r.call.IsCommand() {
		r.call.Variables(add)
	} else if r.program != nil {
		for _, v := range r.program.Env {
			add(v)
		}
	}
	return all
}

func arguments(r *run, _ []any) any {
	all := []any{}
	if r.program != nil {
		for _, a := range r.program.Args {
			all = append(all, a)
		}
	}
	return all
}

var exitFunctions = map[string]function{
	"exit":           func(r *run, a []any) any { return r.exit(a[0].(canon.Case).Index) },
	"exit-with-code": func(r *run, a []any) any { return r.exit(uint32(a[0].(uint64))) },
}

// exited gets the result of a command: 0 is that all is well.
func (r *run) exited(result uint32) {
	if r.command.returned || result > 1 {
		r.call.Trap("a command returns once, ok or error")
	}
	r.command.returned, r.command.failed = true, result == 1
}

// endCommand ends a command that has returned. An error is the status 1.
func (r *run) endCommand() {
	switch {
	case !r.command.returned:
		r.call.Trap("the command has ended without a result: it must call task.return")
	case r.command.failed:
		r.call.Exit(1)
	}
}

// exit ends the run. An answer that is complete is sent if the status says that all is well.
func (r *run) exit(status uint32) any {
	if status == 0 && r.http.outcome != nil {
		r.answer()
	}
	r.call.Exit(status)
	return nil
}
