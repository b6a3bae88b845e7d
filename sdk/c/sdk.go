package c

import "embed"

// Files are what handlers include, Random, and what is to be read about them.
//
//go:embed LICENSE README.md runner.h runner.hpp src/random.c
var Files embed.FS

// Random is the name of the file that is linked to every module.
const Random = "src/random.c"
