package main

import "strings"

// The texts that the handlers work on.
const (
	sentence = "The quick brown fox jumped over a sleeping dog, waited and kept running."
	part     = "## Part\n\nThe *quick* brown fox **jumped** over a `sleeping` dog, [waited](https://example.com/x) and kept running.\n\n" +
		"- first, walking along the river\n- second, counting stars & looking up\n\n" +
		"| name | price |\n|---|---|\n| lamp | 12.50 |\n| table | 99.00 |\n\n"
)

var document = sentence + "\n\n" + strings.Repeat(part, 10)
