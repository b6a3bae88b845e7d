// Package files reads, checks and writes the files that Badger keeps for a store. It does not
// use Badger for that, because Badger removes files that its manifest does not name, cuts off
// its logs at the first damaged byte, and ends the process at some damage.
//
// Inspect decides before Badger opens the files whether they are whole and have all
// acknowledged commits. CheckTable checks a table that is in use. Salvage reads the
// readable parts of damaged files. Damage is an error that matches ErrDamaged and names the
// file.
//
// A list of versions is how the keys of a backup are written. TableWriter makes the tables of a
// restored store from them.
//
// Pins keeps the indexes of the tables of an open database in memory.
//
// Except for RemoveEmptyLogs and TableWriter the package changes no file. It knows Badger's formats; what
// it knows of the store's formats are the fields of Salvage.
package files
