package main

import (
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

	mu    sync.Mutex       // is held while anything changes
	files map[uint64]*file // that were opened for writing, by their inode number in live
}

// file is a file with pages that may differ from those on the disk.
type file struct {
	live, disk *os.File
	dirty      map[int64]bool // by the number of the page
}

// opened returns the file of an open descriptor, with its path on the disk. The volume is locked.
func (v *volume) opened(fd int, path string) (*file, error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if known := v.files[st.Ino]; known != nil {
		return known, nil
	}
	disk, err := os.OpenFile(path, os.O_RDWR, 0)
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

// forget notes that the file with this path in live loses a name: without another one its number may be
// used again. Programs may still have it open.
func (v *volume) forget(path string) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err == nil && st.Nlink == 1 {
		delete(v.files, st.Ino)
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

// keepSome brings half of the pages that were not synced to the disk. The volume is locked.
func (v *volume) keepSome(random *rand.Rand) error {
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

// both does a change of the disk after one of what programs see, if that has succeeded.
func (n *node) both(errno syscall.Errno, change func() error) syscall.Errno {
	if errno != 0 {
		return errno
	}
	return fs.ToErrno(change())
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Mkdir(ctx, name, mode, out)
	return child, n.both(errno, func() error { return os.Mkdir(n.onDisk(name), os.FileMode(mode&0o777)) })
}

func (n *node) Mknod(ctx context.Context, name string, mode, device uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Mknod(ctx, name, mode, device, out)
	return child, n.both(errno, func() error { return syscall.Mknod(n.onDisk(name), mode, int(device)) })
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	child, errno := n.LoopbackNode.Symlink(ctx, target, name, out)
	return child, n.both(errno, func() error { return os.Symlink(target, n.onDisk(name)) })
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	from := target.(*node).onDisk("")
	child, errno := n.LoopbackNode.Link(ctx, target, name, out)
	return child, n.both(errno, func() error { return os.Link(from, n.onDisk(name)) })
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	n.volume.forget(n.inLive(name))
	return n.both(n.LoopbackNode.Unlink(ctx, name), func() error { return os.Remove(n.onDisk(name)) })
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	return n.both(n.LoopbackNode.Rmdir(ctx, name), func() error { return os.Remove(n.onDisk(name)) })
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	n.volume.forget(parent.(*node).inLive(to))
	return n.both(n.LoopbackNode.Rename(ctx, name, parent, to, flags), func() error {
		return unix.Renameat2(unix.AT_FDCWD, n.onDisk(name), unix.AT_FDCWD, parent.(*node).onDisk(to), uint(flags))
	})
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.volume.mu.Lock()
	defer n.volume.mu.Unlock()
	// Programs may open a file for writing alone; the volume reads what they have written.
	child, inner, options, errno := n.LoopbackNode.Create(ctx, name, flags&^syscall.O_ACCMODE|syscall.O_RDWR, mode, out)
	var h *handle
	errno = n.both(errno, func() (err error) {
		disk, err := os.OpenFile(n.onDisk(name), os.O_CREATE|os.O_RDWR, os.FileMode(mode&0o777))
		if err == nil {
			err = disk.Close()
		}
		if err == nil {
			h, err = n.volume.handle(inner, n.onDisk(name))
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
		h, err = n.volume.handle(inner, n.onDisk(""))
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
		if mode, ok := in.GetMode(); ok {
			if err := os.Chmod(n.onDisk(""), os.FileMode(mode&0o777)); err != nil {
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
		return os.Truncate(n.onDisk(""), int64(size))
	})
}

func (n *node) Getattr(ctx context.Context, h fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if h, ok := h.(*handle); ok {
		return h.inner.Getattr(ctx, out)
	}
	return n.LoopbackNode.Getattr(ctx, nil, out)
}

// Fsync syncs a directory, whose names are on the disk already, or an open file.
func (n *node) Fsync(ctx context.Context, h fs.FileHandle, flags uint32) syscall.Errno {
	if h, ok := h.(*handle); ok {
		return h.Fsync(ctx, flags)
	}
	return 0
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

func (v *volume) handle(inner fs.FileHandle, path string) (*handle, error) {
	h := &handle{volume: v, inner: inner.(*fs.LoopbackFile)}
	fd, _ := h.inner.PassthroughFd()
	f, err := v.opened(fd, path)
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

func (h *handle) Fsync(context.Context, uint32) syscall.Errno {
	h.volume.mu.Lock()
	defer h.volume.mu.Unlock()
	return fs.ToErrno(h.file.sync())
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
