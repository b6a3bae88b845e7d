package settings

import "reflect"

// Changed returns the names of the settings that differ between two lists of pointers to the
// same option structs: those that a reload applies, and those that need a restart.
func Changed(before, after []any) (reload, restart []string) {
	next := find(after)
	for i, s := range find(before) {
		if reflect.DeepEqual(s.fields[0].value.Interface(), next[i].fields[0].value.Interface()) {
			continue
		}
		if s.fields[0].tag.Get("reload") == "true" {
			reload = append(reload, s.name())
		} else {
			restart = append(restart, s.name())
		}
	}
	return reload, restart
}
