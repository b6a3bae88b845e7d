package admin

import (
	"maps"

	"runner.example/keystore"
)

// ImportGC is the state of the garbage collector during imports.
type ImportGC = importGC

// Lower is called when a batch is imported.
func (g *importGC) Lower() { g.lower() }

// RolesOfOperations returns the operations with the roles that they need over the network.
func RolesOfOperations() map[string]keystore.Role {
	roles := maps.Clone(streams)
	for name := range operations {
		roles[name], _ = roleOf(name)
	}
	return roles
}
