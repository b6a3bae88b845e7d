package charset

import "slices"

// Indexes are the indexes by name, for the model in the tests.
func Indexes() map[string]index { return indexes() }

// Names are the names of all encodings, sorted.
func Names() (names []string) {
	for _, e := range byLabel {
		if !slices.Contains(names, e.name) {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}
