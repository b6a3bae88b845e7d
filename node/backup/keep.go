package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"runner.example/internal/system/disk"
)

// Keep says which backups in a directory are kept: the newest one of each of the last Days days, Weeks weeks and
// Months months that have one. Days begin at midnight in UTC, weeks on Monday. The zero value keeps none.
type Keep struct{ Days, Weeks, Months int }

// ParseKeep reads a Keep: numbers with the units d, w and m, such as 7d,4w. One at least is not 0.
func ParseKeep(text string) (k Keep, err error) {
	invalid := fmt.Errorf("%q: want numbers of days, weeks and months from 1 to 10000, each once, such as 7d,4w,12m", text)
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return k, invalid
		}
		n, err := strconv.Atoi(part[:len(part)-1])
		if err != nil || n < 1 || n > 10_000 || part[0] == '+' {
			return k, invalid
		}
		count := map[byte]*int{'d': &k.Days, 'w': &k.Weeks, 'm': &k.Months}[part[len(part)-1]]
		if count == nil || *count != 0 {
			return k, invalid
		}
		*count = n
	}
	return k, nil
}

// Choose returns for each time whether the backup of that time is kept. The newest one always is.
func (k Keep) Choose(times []time.Time) []bool {
	order := make([]int, len(times))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return times[b].Compare(times[a]) }) // the newest first
	kept := make([]bool, len(times))
	if len(order) > 0 {
		kept[order[0]] = true
	}
	for _, rule := range []struct {
		count  int
		period func(time.Time) string
	}{
		{k.Days, func(t time.Time) string { return t.Format(time.DateOnly) }},
		{k.Weeks, func(t time.Time) string { year, week := t.ISOWeek(); return fmt.Sprint(year, " ", week) }},
		{k.Months, func(t time.Time) string { return t.Format("2006-01") }},
	} {
		last, left := "", rule.count
		for _, i := range order {
			if period := rule.period(times[i].UTC()); period != last && left > 0 {
				kept[i], last = true, period
				left--
			}
		}
	}
	return kept
}

// timeInName is the time of a backup in the name of its file, in UTC.
const timeInName = "20060102T150405Z"

const suffix = ".backup"

// nameOf returns the name of the file of a backup in a directory.
func nameOf(head Head) string {
	return filePrefix(head.App) + head.Created.UTC().Format(timeInName) + suffix
}

// filePrefix returns the part of the name before the time.
func filePrefix(app string) string {
	if app == "" {
		app = "runner"
	}
	return app + "-"
}

// InDir writes a backup to a new file of the directory dir, as File does: <app>-<time>.backup. It then deletes the
// backups in dir that keep does not keep, and returns the names of both kinds. It deletes regular files alone that
// have such a name, begin as a backup of the same app and the same pepper, and have the time in their name. After
// an error it has deleted none. A process that was killed leaves a file <app>.backup.partial, which the
// next one writes over.
func InDir(ctx context.Context, dir, app string, keep Keep, send func(io.Writer) error) (path string, info Info, changed Changed, err error) {
	if at, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", info, changed, fmt.Errorf("the directory %q does not exist: create it first, with mode 0700", dir)
	} else if err != nil {
		return "", info, changed, err
	} else if !at.IsDir() {
		return "", info, changed, fmt.Errorf("%q is not a directory", dir)
	}
	partial := filepath.Join(dir, strings.TrimSuffix(filePrefix(app), "-")+suffix+".partial")
	info, err = writeTo(ctx, partial, send, func(info Info) error {
		path = filepath.Join(dir, nameOf(info.Head))
		return rename(partial, path, false)
	})
	if err != nil {
		return "", info, changed, err
	}
	changed, err = prune(ctx, dir, filepath.Base(path), info.Head, keep)
	return path, info, changed, err
}

// Changed are the names of the backups in a directory, from the oldest to the newest.
type Changed struct {
	Kept    []string `json:"kept"`
	Deleted []string `json:"deleted"`
}

// prune deletes the backups of dir that are not kept. newest is the one that was just written.
func prune(ctx context.Context, dir, newest string, head Head, keep Keep) (changed Changed, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return changed, err
	}
	var names []string
	var times []time.Time
	for _, e := range entries {
		created, ok := timeOf(e.Name(), head.App)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		if h, err := headOf(ctx, filepath.Join(dir, e.Name())); err != nil || h.App != head.App || h.PepperCheck != head.PepperCheck || !h.Created.Equal(created) {
			continue // not a backup of this store, or one that cannot be read
		}
		names, times = append(names, e.Name()), append(times, created)
	}
	kept := keep.Choose(times)
	changed = Changed{Kept: []string{}, Deleted: []string{}}
	for i, name := range names { // in the order of their names, which is that of their times
		if kept[i] || name == newest {
			changed.Kept = append(changed.Kept, name)
			continue
		}
		if failed := os.Remove(filepath.Join(dir, name)); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
			continue
		}
		changed.Deleted = append(changed.Deleted, name)
	}
	return changed, errors.Join(err, disk.SyncDir(dir))
}

// timeOf returns the time in the name of a backup of the app.
func timeOf(name, app string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(name, filePrefix(app))
	text, ok2 := strings.CutSuffix(rest, suffix)
	created, err := time.Parse(timeInName, text)
	return created, ok && ok2 && err == nil && created.Format(timeInName) == text
}

// headOf reads the head of a file. The error matches ErrInvalid if it is not a backup.
func headOf(ctx context.Context, path string) (head Head, err error) {
	file, err := disk.Open(path, os.O_RDONLY|disk.NoFollow|disk.NoWait, 0)
	if err != nil {
		return head, err
	}
	defer file.Close()
	_, head, err = readHead(ctx, file)
	return head, err
}
