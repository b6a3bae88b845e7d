package capture

// Size is what a State consists of.
type Size struct {
	Stack    int // bytes of the stack that Resume copies
	Frames   int // active functions of the module
	Replaced int // words that Resume replaces by addresses of its instance
	Dead     int // words that were addresses of the captured instances, and that no code uses
}
