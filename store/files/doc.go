// Package files reads and checks the files that Badger keeps for a store, without
// Badger: which removes what its manifest does not name, cuts its logs off at the first
// byte that is not whole, and ends the process at some damage.
//
// Inspect decides before Badger opens the files whether they are whole and hold all that
// was acknowledged. CheckTable checks a table that is in use. Salvage reads what is left
// of damaged files. Damage is an error that matches ErrDamaged and names the file.
//
// The package changes no file, but for RemoveEmptyLogs. It knows Badger's formats, and
// of the store's own only what Salvage is told.
package files
