package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
	"runner.example/hostabi/wasi"
	"runner.example/internal/component"
	"runner.example/internal/wasm"
	"runner.example/runtime/compile"
)

// hostModule has the functions that guests import under one module name.
type hostModule struct {
	name      string
	functions []hostabi.Function
}

// hostModules returns what guests can import.
func hostModules() []hostModule {
	all := []hostModule{{abi.Module, hostabi.Functions()}, {hostabi.WASIModule, hostabi.WASI()}}
	for _, m := range wasi.Modules() {
		all = append(all, hostModule{m.Name, m.Functions})
	}
	return all
}

// offered are the functions of hostModules, by module and name.
var offered = sync.OnceValue(func() map[string]map[string]hostabi.Function {
	all := map[string]map[string]hostabi.Function{}
	for _, m := range hostModules() {
		all[m.name] = map[string]hostabi.Function{}
		for _, f := range m.functions {
			all[m.name][f.Name] = f
		}
	}
	return all
})

// ImportError means that a module imports functions that the runner does not have.
type ImportError struct {
	// Names are the imports, as module.name.
	Names []string
	// Host names the host that the module was made for, and says what to do. It is empty if the host is unknown.
	Host string
}

func (e *ImportError) Error() string {
	return fmt.Sprintf("%s: %s", e.What(), remedyOf(e.Names...))
}

func remedyOf(imports ...string) string {
	return cmp.Or(hostOf(imports...),
		"it was made for another host; a handler imports only from "+abi.Module+" and "+hostabi.WASIModule)
}

// What describes the error without the remedy.
func (e *ImportError) What() string {
	return fmt.Sprintf("imports %s, which guest ABI %d does not have", some(e.Names), abi.Version)
}

// Inspect checks what a module imports and exports, as Load does before it compiles it. stub are the modules whose
// imports the schema replaces by stubs. It does not check the size of the memory. An import that the runner does not have is an
// *ImportError.
func Inspect(m *wasm.Module, stub []string) error {
	if err := checkImports(m, false, stub); err != nil {
		return err
	}
	return new(program).readExports(m)
}

// checkImports refuses imports that the host does not have, and names them.
func checkImports(m *wasm.Module, isComponent bool, stub []string) error {
	var unknown []string
	for _, i := range m.Imports() {
		f, ok := offered()[i.Module][i.Name]
		switch {
		case isStub(i, stub):
		case !ok, !isComponent && ofComponents(i.Module):
			unknown = append(unknown, qualified(i))
		case !sameTypes(i.Type.Params, f.Params) || !sameTypes(i.Type.Results, f.Results):
			return fmt.Errorf("imports %s as %s, which is %s in guest ABI %d: %s",
				qualified(i), signature(i.Type), signature(typeOf(f)), abi.Version, remedyOf(qualified(i)))
		}
	}
	if len(unknown) > 0 {
		return &ImportError{Names: unknown, Host: hostOf(unknown...)}
	}
	return nil
}

// ofComponents reports whether a host module is for components only.
func ofComponents(module string) bool {
	return module == component.HostModule || strings.Contains(module, ":")
}

func qualified(i wasm.Import) string { return i.Module + "." + i.Name }

// some lists the first six names, and the number of the others.
func some(names []string) string {
	const most = 6
	var first []string
	for _, name := range names[:min(len(names), most)] {
		first = append(first, compile.Quote(name, 100))
	}
	if len(names) <= most {
		return strings.Join(first, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(first, ", "), len(names)-most)
}

// otherHost is another host of WebAssembly modules, such as Extism. The runner does not have its functions.
type otherHost struct {
	// name is used in error messages.
	name string
	// imports are prefixes of the names of its functions, as module.name.
	imports []string
	// remedy is what to do.
	remedy string
}

// Parts of several remedies.
const (
	useSDK     = "use the runner's SDK, or write a WASI program"
	withoutSDK = "build it for wasm32-wasip1, or write it in a language of the runner's SDKs"
)

// otherHosts are tried in order. Those that share the module env are recognized by prefixes of function names.
var otherHosts = []otherHost{
	{"Extism", []string{"extism:host/", "env.extism_"}, useSDK + " in place of an Extism plug-in"},
	{"Spin", []string{
		"fermyon:", "spin:", "spin-config.", "spin-http.", "spin_sdk", "wasi-outbound-http.", "outbound-redis.",
		"outbound-pg.", "outbound-mysql.", "key-value.",
	}, "export wasi:http/incoming-handler and import wasi:http/outgoing-handler only, or " + useSDK},
	{"Fastly Compute", []string{"fastly", "env.xqd_"}, useSDK + " in place of the Fastly SDK"},
	{"wasmCloud", []string{"wasmcloud:", "wapc.", "wasmbus"},
		"export wasi:http/incoming-handler and import wasi:http/outgoing-handler only, or " + useSDK},
	{"a host of WASI cloud interfaces", []string{
		"wasi:keyvalue/", "wasi:blobstore/", "wasi:messaging/", "wasi:config/", "wasi:sql/", "wasi:logging/",
	}, "use the rows and jobs of the runner's SDK"},
	{"a proxy (proxy-wasm: Envoy, Istio, nginx)", []string{"env.proxy_"},
		useSDK + ": a filter of a proxy has no request of its own to answer"},
	{"http-wasm", []string{"http_handler."}, useSDK + ": a middleware has no request of its own to answer"},
	{"Cloudflare Workers", []string{"cloudflare:", "./worker", "__wbindgen_placeholder__.__wbg_cloudflare"},
		useSDK + " in place of workers-rs"},
	{"JavaScript (wasm-bindgen: browsers, Node.js, Cloudflare Workers)", []string{
		"wbg.", "__wbindgen_placeholder__.", "__wbindgen_externref_xform__.", "__wbindgen_", "./index_bg.js.",
		"env.__wbindgen_", "env.__wbg_",
	}, "build it for wasm32-wasip1 without the crate wasm-bindgen, which features such as js of getrandom and wasmbind of chrono need"},
	{"JavaScript (Go with GOOS=js)", []string{"gojs.", "go.runtime.", "go.syscall/js."}, "build it with GOOS=wasip1, or by runner build"},
	{"JavaScript (Emscripten)", []string{
		"env.emscripten_", "env._emscripten_", "env.__syscall_", "env.invoke_", "env.__cxa_",
		"env.__embind_", "env._embind_", "env._emval_", "env._abort_js",
		"env.__assert_fail", "env.setThrew", "env._localtime_js", "env._tzset_js",
		"env.__handle_stack_overflow", "env.abortOnCannotGrowMemory", "a.",
	}, "build it with clang for wasm32-wasip1, as runner build does: Emscripten's functions are in its JavaScript"},
	{"Wasmer (WASIX)", []string{"wasix_"}, "build it for wasm32-wasip1, without threads, sockets and processes of WASIX"},
	{"WASI before preview 1", []string{"wasi_unstable."}, "build it for wasm32-wasip1 with a newer toolchain"},
	{"WasmEdge", []string{
		"wasmedge", "wasi_ephemeral_", "wasi_nn", hostabi.WASIModule + ".sock_open", hostabi.WASIModule + ".sock_bind",
		hostabi.WASIModule + ".sock_connect", hostabi.WASIModule + ".sock_listen", hostabi.WASIModule + ".sock_getaddrinfo",
	}, "build it for wasm32-wasip1, without sockets and other extensions"},
	{"Javy's plug-in", []string{"javy"}, "build it with `javy build` without `-C dynamic`, or write handlers in TypeScript"},
	{"Kotlin in JavaScript", []string{"js_code."}, withoutSDK},
	{"Dart or Flutter in JavaScript", []string{"dart2wasm."}, withoutSDK},
	{"a blockchain", []string{"env.db_read", "env.seal_", "seal0.", "env.ext_", "vm_hooks.", "env.storage_read", "env.addr_"}, useSDK},
}

// hostOf returns which other host has these imports, and what to do. It returns "" if the host is unknown.
func hostOf(imports ...string) string {
	for _, name := range imports {
		if from, _, _ := strings.Cut(name, "."); from == abi.Module {
			return "build it with an SDK for that version"
		}
	}
	if !slices.ContainsFunc(imports, func(name string) bool { return !assemblyScript[name] }) {
		return "AssemblyScript adds these imports by default: " +
			"add the SDK to its package.json, or build it with --use abort= and without seed and trace"
	}
	for _, host := range otherHosts {
		if host.has(imports) {
			return fmt.Sprintf("it was made for %s: %s", host.name, host.remedy)
		}
	}
	if slices.ContainsFunc(imports, func(name string) bool { return strings.HasPrefix(name, hostabi.WASIModule+".") }) {
		return "build it for wasm32-wasip1, without extensions of another host"
	}
	return ""
}

func (h *otherHost) has(imports []string) bool {
	return slices.ContainsFunc(imports, func(name string) bool {
		return slices.ContainsFunc(h.imports, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
}

// assemblyScript are the imports that the AssemblyScript compiler adds by default.
var assemblyScript = map[string]bool{"env.abort": true, "env.seed": true, "env.trace": true, "env.console.log": true}
