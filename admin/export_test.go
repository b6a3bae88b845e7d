package admin

// ImportGC is the state of the garbage collector during imports.
type ImportGC = importGC

// Lower is called when a batch is imported.
func (g *importGC) Lower() { g.lower() }
