package admin

import (
	"maps"

	"runner.example/keystore"
)

// RolesOfOperations returns the operations with the roles that they need over the network.
func RolesOfOperations() map[string]keystore.Role {
	roles := maps.Clone(streams)
	for name := range operations {
		roles[name], _ = roleOf(name)
	}
	return roles
}
