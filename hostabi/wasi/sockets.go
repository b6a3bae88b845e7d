package wasi

import "runner.example/internal/component/canon"

// network is the network, which cannot be used.
type network struct{}

func (*network) kind() string { return "network" }

func (n *network) keep(*run) resource { return n }

var socketCodes = codes("wasi:sockets/network", "network-error-code")

func socketError(name string) any { return fail(canon.Case{Index: socketCodes()[name]}) }

func refuseSocket(*run, []any) any { return socketError("access-denied") }

func refuseLookup(r *run, a []any) any {
	use[*network](r, a[0])
	return socketError("access-denied")
}
