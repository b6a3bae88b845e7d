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
	if r.program != nil {
		for _, v := range r.program.Env {
			name, value, _ := strings.Cut(v, "=")
			all = append(all, []any{name, value})
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

// exit ends the run. An answer that is complete is sent if the status says that all is well.
func (r *run) exit(status uint32) any {
	if status == 0 && r.http.outcome != nil {
		r.answer()
	}
	r.call.Exit(status)
	return nil
}
