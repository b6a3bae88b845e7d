package c

import "embed"

// Headers are what handlers include, and what is to be read about it.
//
//go:embed LICENSE README.md runner.h runner.hpp
var Headers embed.FS
