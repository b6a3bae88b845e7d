package server

import (
	"runner.example/keystore"
	"runner.example/node/admin"
)

// RolesOfOperations returns the operations with the roles that they need over the network.
func RolesOfOperations() map[string]keystore.Role {
	roles := map[string]keystore.Role{admin.OpUpload.Name: admin.OpUpload.Role, admin.OpUploadBatch.Name: admin.OpUploadBatch.Role, admin.OpBackup.Name: admin.OpBackup.Role}
	for name, h := range handlers {
		roles[name] = h.role
	}
	return roles
}
