package entity

import (
	"strconv"
	"strings"

	"runner.example/internal/fault"
	"runner.example/schema"
	"runner.example/state/entity/layout"
)

// deletePart deletes the found rows and those that follow by @onDelete, the referring rows first: at most
// a.Part rows, so that the transaction stays small. The answer is {"count","following","more"}: the number of
// deleted rows that were found, of other rows that were deleted or changed, and whether found rows remain.
//
// The rows that it leaves are consistent: a row is deleted only after its referring rows, or together with them. A
// part has more than a.Part rows only if rows refer to each other in a cycle.
func (o *operation) deletePart(d *deletion, found []layout.Row) error {
	p := part{deletion: d, seen: map[string]bool{}, stays: map[string]bool{}}
	more := false
	for i := range found {
		whole, err := p.descend(o.table, found[i].Tail)
		if err != nil {
			return err
		}
		if more = more || !whole; p.left() <= 0 {
			more = more || i+1 < len(found)
			break
		}
	}
	if len(d.removed)+len(d.cleared) == 0 && p.kept != nil {
		return p.kept
	}
	if err := d.apply(); err != nil {
		return err
	}
	count := 0
	for i := range found {
		if d.gone[string(o.rowKey(o.table, found[i].Tail))] {
			count++
		}
	}
	following := len(d.removed) - count
	for key := range d.cleared {
		if !d.gone[key] {
			following++
		}
	}
	out := strconv.AppendInt(append(o.out.JSON, `{"count":`...), int64(count), 10)
	out = strconv.AppendInt(append(out, `,"following":`...), int64(following), 10)
	o.out.JSON = append(strconv.AppendBool(append(out, `,"more":`...), more), '}')
	return nil
}

// part selects the rows of one part of a long delete.
type part struct {
	*deletion
	seen map[string]bool // keys of the visited rows: rows may refer to each other in a cycle
	// stays are the keys of the visited rows that are not deleted. The rows to which they refer are not deleted either.
	stays map[string]bool
	// kept is the error of a row that was not deleted, because another row refers to it by @onDelete(restrict). A
	// later part may delete the other row first.
	kept error
}

// visit is a row whose referring rows are visited before it is deleted.
type visit struct {
	table     *table
	tail      string
	referring []visit // not visited yet
	stays     bool    // a referring row is not deleted
}

// descend deletes the rows that refer to a row, and then the row. It reports whether the row is deleted. If not, the
// part is full, or a referring row is not deleted.
func (p *part) descend(t *table, tail string) (bool, error) {
	path := []visit{{table: t, tail: tail}}
	for entering := true; ; {
		at := &path[len(path)-1]
		if entering {
			if err := p.enter(at); err != nil {
				return false, err
			}
		}
		if n := len(at.referring); n > 0 {
			next := at.referring[n-1]
			at.referring = at.referring[:n-1]
			key := p.rowKey(next.table, next.tail)
			at.stays = at.stays || p.stays[string(key)]
			if entering = !p.seen[string(key)]; entering {
				path = append(path, next)
			}
			continue
		}
		whole := false
		if !at.stays {
			var err error
			if whole, err = p.leave(at); err != nil {
				return false, err
			}
		}
		if !whole {
			p.stays[string(p.rowKey(at.table, at.tail))] = true
		}
		path, entering = path[:len(path)-1], false
		if len(path) == 0 || p.left() <= 0 {
			return whole && len(path) == 0, nil
		}
		if !whole {
			path[len(path)-1].stays = true
		}
	}
}

// left returns the number of rows that the part can still change.
func (p *part) left() int { return p.Part - len(p.removed) - len(p.cleared) }

// enter lists the rows that @onDelete deletes with a row. It lists up to the size of the part for each relation,
// because the rows of another relation may have to be deleted first.
func (p *part) enter(v *visit) error {
	p.seen[string(p.rowKey(v.table, v.tail))] = true
	r, found, err := p.read(v.table, v.tail)
	if err != nil || !found {
		return err
	}
	gone := removalOf(v.table, &r)
	for i := range v.table.referrers {
		from := &v.table.referrers[i]
		if from.onDelete != schema.Cascade {
			continue
		}
		listed := len(v.referring)
		err := p.scan(from.table, from.plan(&gone), func(r *layout.Row) (bool, error) {
			switch key := p.rowKey(from.table, r.Tail); {
			case p.stays[string(key)]:
				v.stays = true
			case !p.seen[string(key)]:
				v.referring = append(v.referring, visit{table: from.table, tail: strings.Clone(r.Tail)})
			}
			return len(v.referring)-listed <= p.left(), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leave clears the relations to a row whose referring rows are deleted, and deletes the row. It reports whether the
// row is deleted. If not, the part is full, or another row restricts the delete.
func (p *part) leave(v *visit) (whole bool, err error) {
	r, found, err := p.read(v.table, v.tail)
	if err != nil || !found {
		return err == nil, err
	}
	gone := removalOf(v.table, &r)
	for i := range v.table.referrers {
		if from := &v.table.referrers[i]; from.onDelete == schema.Restrict {
			err := p.checkGone(&gone, from)
			if fault.CodeOf(err) == fault.Conflict {
				p.kept = err
				return false, nil
			}
			if err != nil {
				return false, err
			}
		}
	}
	for i := range v.table.referrers {
		from := &v.table.referrers[i]
		if from.onDelete != schema.Clear {
			continue
		}
		err := p.scan(from.table, from.plan(&gone), func(r *layout.Row) (bool, error) {
			if p.left() <= 0 {
				return false, nil
			}
			return true, p.affect(from, r)
		})
		if err != nil {
			return false, err
		}
	}
	if p.left() <= 0 {
		return false, nil
	}
	return true, p.remove(v.table, &r)
}
