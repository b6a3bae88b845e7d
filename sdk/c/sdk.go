package c

import "embed"

// Files are what handlers include, Random, and what is to be read about them.
//
//go:embed LICENSE README.md runner.h runner.hpp src/random.c src/failure.c
var Files embed.FS

// Linked are the names of the files that are linked to every module.
var Linked = []string{"src/random.c", "src/failure.c"}
