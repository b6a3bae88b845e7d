package component

// Bounds of a component. An error that comes from one of them names it.
const (
	maxNesting   = 100     // components and types within each other
	maxFields    = 10_000  // parts of one type
	maxParams    = 1_000   // of one function
	maxTypeDepth = 100     // value types within each other
	maxTypeSize  = 100_000 // value types in one, counted as often as they are there
	maxNameBytes = 10_000  // of one name

	// Entries of all sections, declarators of all types, arguments, and the imports and exports of
	// core modules. Components of WASI 0.2 and 0.3 have about 1,500.
	maxEntries = 100_000
	// Definitions, declarators and types that are evaluated or compared. Components of WASI 0.2 and
	// 0.3 need about 6,000.
	maxSteps = 200_000

	maxModules   = 100   // core modules in the file
	maxInstances = 1_000 // core instances, and component instances
	maxImports   = 5_000 // functions and resources that the component imports
	maxOptions   = 10    // of one canonical definition
)

// maxValueBytes is the canonical ABI's bound of a value's size in memory, without what it points to.
const maxValueBytes = 1<<28 - 1
