// Package config reads the configuration of a server: runner.toml and the environment, into
// the options of the packages. The options own their settings; this package only knows which
// options there are, and which settings depend on each other.
package config
