// Package component reads WebAssembly components, checks them, and evaluates them to a plan. It says which
// core modules to instantiate in which order, where each of their imports comes from, and which
// functions of the canonical ABI lie between them and the host. The plan has no components any
// more: nested components are instantiated, aliases are followed, and all types are resolved.
//
// The binary format is version 0x0d, layer 1, of the component model's Binary.md: that of WASI 0.2,
// with the async functions, streams, futures and built-ins of WASI 0.3. The layout of values in
// memory and in core parameters is that of its CanonicalABI.md, for 32-bit memories. Values at the
// component level, start functions, threads and memory64 are refused by name.
//
// A component is checked while it is evaluated. Types of instances and components are kept as
// lists of declarators with the scope that they are in. A use of a type evaluates its list again:
// with resources of its own, or with those of the item that it is compared with. So no type is ever
// rewritten. A nested component is evaluated once for its declared imports, which checks it, and
// once for each instantiation, which adds to the plan.
//
// Two things can grow faster than the file: types that contain each other and components that
// instantiate each other. Each step of an evaluation and of a comparison counts, and all of them
// together are bounded, see maxSteps. Other bounds are in limits.go.
//
// Link makes one core module of a plan. Code is generated for what is between core modules: calls of the
// host, whose results the guest allocates, calls between component instances, which pass values part by
// part, and resources that a component defines. The host has a table of handles for each component
// instance. A function of the host never calls the guest.
//
// All functions depend only on their input and may be called from any goroutine. A plan borrows the
// bytes of the file, which must not change while it is in use.
package component
