package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// pageBytes is the unit in which bytes reach the disk.
const pageBytes = 4096

// volume is the file system: what programs see, and what is on the disk.
type volume struct {
	live fs.LoopbackRoot
	disk string
	// inodes is a directory beside disk, with a hard link to each file of the disk, and with the files whose
	// names are not on the disk yet.
	inodes string

	mu     sync.Mutex        // is held while anything changes
	files  map[uint64]*file  // that were opened for writing, by their inode number in live
	stored map[uint64]string // the paths in inodes, by the inode number in live
	made   int               // files in inodes
	names  []change          // that are not on the disk, in order
}

// change is one of the names of the disk. The paths in it are those after all changes before it, so changes
// reach the disk in order, as in a journal.
type change struct {
	dirs  [2]uint64 // the inode numbers of the directories whose names change
	new   uint64    // that of a new file or directory, whose sync is enough; 0: there is none
	apply func() error
}

// newVolume returns the volume of a disk that was copied to live.
func newVolume(disk, live string) (*volume, error) {
	v := &volume{disk: disk, inodes: disk + ".inodes", files: map[uint64]*file{}, stored: map[uint64]string{}}
	if err := errors.Join(os.RemoveAll(v.inodes), os.Mkdir(v.inodes, 0o700)); err != nil {
		return nil, err
	}
	return v, filepath.WalkDir(disk, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(disk, path)
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(live, rel), &st); err != nil {
			return err
		}
		return v.store(st.Ino, func(inode string) error { return os.Link(path, inode) })
	})
}

// store makes a file in inodes, unless the volume knows it already. The volume is locked.
func (v *volume) store(ino uint64, mk func(path string) error) error {
	if v.stored[ino] != "" {
		return nil
	}
	v.made++
	path := filepath.Join(v.inodes, fmt.Sprint(v.made))
	v.stored[ino] = path
	return mk(path)
}

// sync brings to the disk all changes up to the last one that a sync of this file or directory is for.
func (v *volume) sync(ino uint64) error {
	for n := len(v.names); n > 0; n-- {
		if c := v.names[n-1]; c.new == ino || c.dirs[0] == ino || c.dirs[1] == ino {
			return v.apply(n)
		}
	}
	return nil
}

// apply brings the first n changes of names to the disk.
func (v *volume) apply(n int) error {
	for _, c := range v.names[:n] {
		if err := c.apply(); err != nil {
			return err
		}
	}
	v.names = slices.Delete(v.names, 0, n)
	return nil
}

// file is a file with pages that may differ from those on the disk.
type file struct {
	live, disk *os.File
	dirty      map[int64]bool // by the number of the page
}

// opened returns the file of an open descriptor. The volume is locked.
func (v *volume) opened(fd int) (*file, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if known := v.files[st.Ino]; known != nil {
		return known, nil
	}
	disk, err := os.OpenFile(v.stored[st.Ino], os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	live, err := os.OpenFile(fmt.Sprint("/proc/self/fd/", fd), os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, disk.Close())
	}
	known := &file{live: live, disk: disk, dirty: map[int64]bool{}}
	v.files[st.Ino] = known
	return known, nil
}

// lastName returns the inode number of the file with this path in live, if it has no other name; else 0.
func lastName(path string) uint64 {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil || st.Nlink != 1 {
		return 0
	}
	return st.Ino
}

// forget notes that a file has lost its last name, and that its number may be used again. Programs may still
// have it open. It returns what removes the file in inodes when it has lost its name on the disk too.
func (v *volume) forget(ino uint64) (remove func() error) {
	stored := v.stored[ino]
	delete(v.files, ino)
	delete(v.stored, ino)
	return func() error {
		if stored == "" {
			return nil
		}
		return os.Remove(stored)
	}
}

func (f *file) wrote(off int64, n int) {
	for page := off / pageBytes; page*pageBytes < off+int64(n); page++ {
		f.dirty[page] = true
	}
}

// sync brings the pages that were written to the disk.
func (f *file) sync() error {
	for _, page := range slices.Sorted(maps.Keys(f.dirty)) {
		if err := f.copyPage(page); err != nil {
			return err
		}
	}
	clear(f.dirty)
	info, err := f.live.Stat()
	if err != nil {
		return err
	}
	return f.disk.Truncate(info.Size())
}

func (f *file) copyPage(page int64) error {
	var bytes [pageBytes]byte
	n, err := f.live.ReadAt(bytes[:], page*pageBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err = f.disk.WriteAt(bytes[:n], page*pageBytes)
	return err
}

// keepSome brings half of the pages that were not synced to the disk, and the first of the changes of names.
// The volume is locked.
func (v *volume) keepSome(random *rand.Rand) error {
	if err := v.apply(random.IntN(len(v.names) + 1)); err != nil {
		return err
	}
	for _, ino := range slices.Sorted(maps.Keys(v.files)) {
		f := v.files[ino]
		for _, page := range slices.Sorted(maps.Keys(f.dirty)) {
			if random.IntN(2) == 0 {
				if err := f.copyPage(page); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// node is a file or directory. What the loopback file system does with it changes what programs see; the
// methods here do the same to the disk, or note what is to be synced.
type node struct {
	*fs.LoopbackNode
	volume *volume
}

// WrapChild makes a node of each new one of the loopback file system.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: child.(*fs.LoopbackNode), volume: n.volume}
}

// inLive returns the path in live of a name in a directory.
func (n *node) inLive(name string) string {
	return filepath.Join(n.volume.live.Path, n.Path(n.Root()), name)
}

// onDisk returns the path on the disk of a name in a directory; "" is the directory itself.
func (n *node) onDisk(name string) string {
	return filepath.Join(n.volume.disk, n.Path(n.Root()), name)
}

// ino is the inode number of a node in live.
func ino(n fs.InodeEmbedder) uint64 { return n.EmbeddedInode().StableAttr().Ino }

// both does a change of the disk after one of what programs see, if that has succeeded.
func (n *node) both(errno syscall.Errno, change func() error) syscall.Errno {
	if errno != 0 {
		return errno
	}
	return fs.ToErrno(change())
}

// change notes a change of the names in the directory. created is the inode number of a new file or
// directory; 0: there is none.
func (n *node) change(created uint64, apply func() error) {
	n.volume.names = append(n.volume.names, change{dirs: [2]uint64{ino(n)}, new: created, apply: apply})
}

// made stores a new file, and notes its name. The volume is locked.
func (n *node) made(child *fs.Inode, name string, mk func(path string) error) error {
	v, id, path := n.volume, ino(child.Operations()), n.onDisk(name)
	if v.stored[id] != "" {
		return nil // it was there
	}
	if err := v.store(id, mk); err != nil {
		return err
	}
	stored := v.stored[id]
	n.change(id, func() error { return os.Link(stored, path) })
	return nil
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Mkdir(ctx, name, mode, out)
	path := n.onDisk(name)
	return child, n.both(errno, func() error {
		n.change(ino(child.Operations()), func() error { return os.Mkdir(path, os.FileMode(mode&0o777)) })
		return nil
	})
}

func (n *node) Mknod(ctx context.Context, name string, mode, device uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Mknod(ctx, name, mode, device, out)
	return child, n.both(errno, func() error {
		return n.made(child, name, func(path string) error { return syscall.Mknod(path, mode, int(device)) })
	})
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Symlink(ctx, target, name, out)
	return child, n.both(errno, func() error {
		return n.made(child, name, func(path string) error { return os.Symlink(target, path) })
	})
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Link(ctx, target, name, out)
	stored, path := n.volume.stored[ino(target)], n.onDisk(name)
	return child, n.both(errno, func() error {
		n.change(0, func() error { return os.Link(stored, path) })
		return nil
	})
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	path, last := n.onDisk(name), lastName(n.inLive(name))
	return n.both(n.LoopbackNode.Unlink(ctx, name), func() error {
		remove := n.volume.forget(last)
		n.change(0, func() error { return errors.Join(os.Remove(path), remove()) })
		return nil
	})
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	path := n.onDisk(name)
	return n.both(n.LoopbackNode.Rmdir(ctx, name), func() error {
		n.change(0, func() error { return os.Remove(path) })
		return nil
	})
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	replaced := uint64(0)
	if flags&unix.RENAME_EXCHANGE == 0 {
		replaced = lastName(parent.(*node).inLive(to))
	}
	from, path := n.onDisk(name), parent.(*node).onDisk(to)
	return n.both(n.LoopbackNode.Rename(ctx, name, parent, to, flags), func() error {
		remove := n.volume.forget(replaced)
		n.volume.names = append(n.volume.names, change{dirs: [2]uint64{ino(n), ino(parent)}, apply: func() error {
			return errors.Join(unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, path, uint(flags)), remove())
		}})
		return nil
	})
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	// Programs may open a file for writing alone; the volume reads what they have written.
	child, inner, options, errno := n.LoopbackNode.Create(ctx, name, flags&^syscall.O_ACCMODE|syscall.O_RDWR, mode, out)
	var h *handle
	errno = n.both(errno, func() error {
		err := n.made(child, name, func(path string) error {
			disk, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, os.FileMode(mode&0o777))
			if err != nil {
				return err
			}
			return disk.Close()
		})
		if err == nil {
			h, err = n.volume.handle(inner)
		}
		return err
	})
	return child, h, options | fuse.FOPEN_KEEP_CACHE, errno
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	if flags&syscall.O_ACCMODE == syscall.O_WRONLY {
		flags = flags&^syscall.O_ACCMODE | syscall.O_RDWR
	}
	inner, options, errno := n.LoopbackNode.Open(ctx, flags)
	var h *handle
	errno = n.both(errno, func() (err error) {
		h, err = n.volume.handle(inner)
		if err == nil && flags&syscall.O_TRUNC != 0 {
			err = h.file.truncate(0)
		}
		return err
	})
	return h, options | fuse.FOPEN_KEEP_CACHE, errno
}

func (n *node) Setattr(ctx context.Context, h fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	var inner fs.FileHandle
	if h, ok := h.(*handle); ok {
		inner = h.inner
	}
	return n.both(n.LoopbackNode.Setattr(ctx, inner, in, out), func() error {
		stored := n.volume.stored[ino(n)] // "" of a directory
		if mode, ok := in.GetMode(); ok {
			path := cmp.Or(stored, n.onDisk(""))
			chmod := func() error { return os.Chmod(path, os.FileMode(mode&0o777)) }
			if stored == "" {
				n.change(0, chmod)
			} else if err := chmod(); err != nil {
				return err
			}
		}
		size, ok := in.GetSize()
		if !ok {
			return nil
		}
		if h, ok := h.(*handle); ok {
			return h.file.truncate(int64(size))
		}
		if f := n.volume.files[out.Ino]; f != nil {
			return f.truncate(int64(size))
		}
		return os.Truncate(stored, int64(size))
	})
}

func (n *node) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if h, ok := h.(*handle); ok {
		return h.inner.Getattr(ctx, out)
	}
	return n.LoopbackNode.Getattr(ctx, nil, out)
}

// Fsync syncs an open file, and its name if it is new.
func (n *node) Fsync(_ context.Context, h fs.FileHandle, _ uint32) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	if h, ok := h.(*handle); ok {
		return fs.ToErrno(errors.Join(h.file.sync(), n.volume.sync(ino(n))))
	}
	return fs.ToErrno(n.volume.sync(ino(n)))
}

// directory is an open directory.
type directory struct {
	listing
	node *node
}

type listing interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, options, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &directory{h.(listing), n}, options, 0
}

// Fsyncdir syncs the names in a directory.
func (d *directory) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	return d.node.Fsync(ctx, nil, flags)
}

// CopyFileRange makes the kernel read and write instead.
func (n *node) CopyFileRange(context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64, uint64) (uint32, syscall.Errno) {
	return 0, syscall.ENOSYS
}

// handle is an open file.
type handle struct {
	volume *volume
	inner  *fs.LoopbackFile
	file   *file
}

func (v *volume) handle(inner fs.FileHandle) (*handle, error) {
	h := &handle{volume: v, inner: inner.(*fs.LoopbackFile)}
	fd, _ := h.inner.PassthroughFd()
	f, err := v.opened(fd)
	h.file = f
	return h, err
}

func (h *handle) Read(ctx context.Context, into []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return h.inner.Read(ctx, into, off)
}

func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	h.volume.mu.Lock()
	defer h.volume.mu.Unlock()
	n, errno := h.inner.Write(ctx, data, off)
	h.file.wrote(off, int(n))
	return n, errno
}

func (h *handle) Flush(context.Context) syscall.Errno { return 0 }

func (h *handle) Release(ctx context.Context) syscall.Errno { return h.inner.Release(ctx) }

func (h *handle) Lseek(ctx context.Context, off uint64, whence uint32) (uint64, syscall.Errno) {
	return h.inner.Lseek(ctx, off, whence)
}

func (h *handle) Allocate(ctx context.Context, off, size uint64, mode uint32) syscall.Errno {
	h.volume.mu.Lock()
	defer h.volume.mu.Unlock()
	if errno := h.inner.Allocate(ctx, off, size, mode); errno != 0 {
		return errno
	}
	return fs.ToErrno(unix.Fallocate(int(h.file.disk.Fd()), mode, int64(off), int64(size)))
}

// truncate sets the size on the disk, after that of what programs see.
func (f *file) truncate(size int64) error {
	for page := range f.dirty {
		if page*pageBytes >= size {
			delete(f.dirty, page)
		}
	}
	return f.disk.Truncate(size)
}
