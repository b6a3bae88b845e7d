// Package canontest is a guest for tests of values of the canonical ABI: it has memory, an allocator,
// and passes values as core values.
package canontest
