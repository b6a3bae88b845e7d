package server

import "runner.example/keystore"

// RolesOfOperations returns the operations with the roles that they need over the network.
func RolesOfOperations() map[string]keystore.Role {
	roles := map[string]keystore.Role{}
	for _, s := range streams {
		roles[s.Name] = s.Role
	}
	for name, h := range handlers {
		roles[name] = h.role
	}
	return roles
}
