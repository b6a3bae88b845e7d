package layout

import "runner.example/schema"

// FileIn is a file in a stored row.
type FileIn struct {
	schema.File
	Field uint32 // its number
}

// MayHaveFiles reports whether rows of the table may have files, also in fields that only other schemas declare.
func (t *Table) MayHaveFiles() bool { return t.mayHaveFiles }

// FilesIn appends the files of a stored row, in the order of their fields. Their texts are parts of raw.
func FilesIn(dst []FileIn, raw string) ([]FileIn, error) {
	r := reading{rest: raw}
	if r.byte() != rowFormat {
		return dst, ErrDamaged
	}
	for r.rest != "" && !r.broken {
		tag := r.uvarint()
		kind := schema.ValueKind(tag & 15)
		if v := r.value(kind, 0); kind == schema.KindFile && !r.broken {
			dst = append(dst, FileIn{v.File(), uint32(tag >> 4)})
		}
	}
	if r.broken {
		return dst, ErrDamaged
	}
	return dst, nil
}
