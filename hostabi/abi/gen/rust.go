package main

import (
	"fmt"
	"strings"

	"runner.example/hostabi/abi"
)

// rust declares every function as a module of Rust imports it, and the errnos as an
// enum.
func rust() string {
	var b strings.Builder
	b.WriteString(generated)
	b.WriteString(
		"/// Why an operation failed.\n#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[non_exhaustive]\npub enum Code {\n")
	for _, e := range abi.Errnos() {
		fmt.Fprintf(&b, "    /// `%s`: %s\n    %s,\n", e.Name, e.Doc, pascal(e.Name))
	}
	b.WriteString(
		"}\n\nimpl Code {\n    /// The code's name in the guest ABI.\n    pub const fn name(self) -> &'static str {\n        match self {\n")
	for _, e := range abi.Errnos() {
		fmt.Fprintf(&b, "            Code::%s => %q,\n", pascal(e.Name), e.Name)
	}
	b.WriteString("        }\n    }\n\n")
	b.WriteString("    /// The code of a failed host call's number; one that this SDK does not know is internal.\n")
	b.WriteString(
		"    #[cfg(target_arch = \"wasm32\")]\n    pub(crate) const fn from_errno(n: i32) -> Code {\n        match n {\n")
	for _, e := range abi.Errnos() {
		if e.Errno != abi.Internal {
			fmt.Fprintf(&b, "            %d => Code::%s,\n", e.Errno, pascal(e.Name))
		}
	}
	fmt.Fprintf(&b, "            _ => Code::%s,\n        }\n    }\n\n", pascal(abi.Internal.String()))
	b.WriteString("    /// The code of a name; one that this SDK does not know is internal.\n")
	b.WriteString(
		"    #[cfg(target_arch = \"wasm32\")]\n    pub(crate) fn from_name(name: &str) -> Code {\n        match name {\n")
	for _, e := range abi.Errnos() {
		if e.Errno != abi.Internal {
			fmt.Fprintf(&b, "            %q => Code::%s,\n", e.Name, pascal(e.Name))
		}
	}
	fmt.Fprintf(&b, "            _ => Code::%s,\n        }\n    }\n}\n\n", pascal(abi.Internal.String()))
	fmt.Fprintf(&b,
		"#[cfg(target_arch = \"wasm32\")]\n#[allow(dead_code)]\npub(crate) mod imports {\n    #[link(wasm_import_module = %q)]\n    extern \"C\" {\n",
		abi.Module)
	for _, f := range abi.Functions() {
		var params []string
		for _, p := range f.Params {
			switch p.Kind {
			case abi.Number:
				params = append(params, p.Name+": u32")
			case abi.Text, abi.Bytes:
				params = append(params, p.Name+": *const u8", p.Name+"_len: usize")
			case abi.Buffer:
				params = append(params, p.Name+": *mut u8", "cap: usize")
			}
		}
		result := ""
		if f.Result {
			result = " -> i32"
		}
		fmt.Fprintf(&b, "        pub(crate) fn %s(%s)%s;\n", f.Name, strings.Join(params, ", "), result)
	}
	b.WriteString("    }\n}\n")
	return b.String()
}

// pascal turns snake_case into the name of a variant.
func pascal(name string) string {
	name = camel(name)
	return strings.ToUpper(name[:1]) + name[1:]
}
