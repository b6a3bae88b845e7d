// The standard library as a directory that programs can read: functions of wasi-libc that take a descriptor or a path
// come here first (wasm-ld --wrap), and those for other files go on to the host.
//
// library.py makes library.h, the list of files and directories, sorted by path, and the segment with their bytes. The
// segment is passive: it is not in the memory until read() of a file copies a part of it.

#include <stdint.h>
#include <string.h>
#include <wasi/api.h>
#include <wasi/libc.h>

#include "library.h" // LIBRARY_PATH, LIBRARY_TIME, entries

__attribute__((import_module("library"), import_name("library.read"))) void library_read(void *to, uint32_t from, uint32_t n);

// Descriptors from FIRST on are files of the library; FIRST itself is its root directory.
enum { FIRST = 1 << 20, OPEN = 128, PATH = 512 };

static struct {
  int32_t entry; // one more than the index of its entry; 0: closed
  uint64_t at;
} opened[OPEN];

__attribute__((constructor)) static void mount(void) {
  opened[0].entry = 1;
  __wasilibc_register_preopened_fd(FIRST, LIBRARY_PATH);
}

#define OURS(fd) ((uint32_t)(fd) >= FIRST)
#define REAL(name, ...) __real___wasi_##name(__VA_ARGS__)
#define WRAP(name, ...)                            \
  __wasi_errno_t __real___wasi_##name(__VA_ARGS__); \
  __wasi_errno_t __wrap___wasi_##name(__VA_ARGS__)

// find returns the entry of an open descriptor, or NULL.
static const struct entry *find(__wasi_fd_t fd) {
  uint32_t i = fd - FIRST;
  return i < OPEN && opened[i].entry ? &entries[opened[i].entry - 1] : NULL;
}

static int is_dir(const struct entry *e) { return e->size < 0; }

// look finds the entry of a path below a directory.
static __wasi_errno_t look(__wasi_fd_t fd, const char *path, const struct entry **found) {
  const struct entry *dir = find(fd);
  if (!dir) return __WASI_ERRNO_BADF;
  if (!is_dir(dir)) return __WASI_ERRNO_NOTDIR;
  char full[PATH];
  size_t n = strlen(dir->path);
  memcpy(full, dir->path, n);
  int directory = 0; // the path says that it is one
  while (*path) {
    size_t part = strcspn(path, "/");
    directory = path[part] == '/' || part == 0;
    if (part == 2 && path[0] == '.' && path[1] == '.') {
      if (n == 0) return __WASI_ERRNO_NOENT; // above the library
      while (n > 0 && full[--n] != '/') {}
      directory = 1;
    } else if (part == 1 && path[0] == '.') {
      directory = 1;
    } else if (part > 0) {
      if (n + part + 2 > PATH) return __WASI_ERRNO_NAMETOOLONG;
      if (n > 0) full[n++] = '/';
      memcpy(full + n, path, part);
      n += part;
    }
    path += part + (path[part] == '/');
  }
  full[n] = 0;
  int low = 0, high = ENTRIES;
  while (low < high) {
    int mid = (low + high) / 2, order = strcmp(full, entries[mid].path);
    if (order == 0) {
      *found = &entries[mid];
      return directory && !is_dir(*found) ? __WASI_ERRNO_NOTDIR : 0;
    }
    if (order < 0) high = mid;
    else low = mid + 1;
  }
  return __WASI_ERRNO_NOENT;
}

static void describe(const struct entry *e, __wasi_filestat_t *stat) {
  memset(stat, 0, sizeof *stat);
  stat->dev = FIRST;
  stat->ino = e - entries + 1;
  stat->nlink = 1;
  stat->filetype = is_dir(e) ? __WASI_FILETYPE_DIRECTORY : __WASI_FILETYPE_REGULAR_FILE;
  stat->size = is_dir(e) ? 0 : e->size;
  stat->atim = stat->mtim = stat->ctim = LIBRARY_TIME * UINT64_C(1000000000);
}

WRAP(path_open, __wasi_fd_t fd, __wasi_lookupflags_t look_flags, const char *path, __wasi_oflags_t flags,
     __wasi_rights_t rights, __wasi_rights_t inherited, __wasi_fdflags_t fd_flags, __wasi_fd_t *new) {
  if (!OURS(fd)) return REAL(path_open, fd, look_flags, path, flags, rights, inherited, fd_flags, new);
  const struct entry *e;
  __wasi_errno_t err = look(fd, path, &e);
  if (err == __WASI_ERRNO_NOENT && flags & __WASI_OFLAGS_CREAT) return __WASI_ERRNO_ROFS;
  if (err) return err;
  if (flags & __WASI_OFLAGS_CREAT && flags & __WASI_OFLAGS_EXCL) return __WASI_ERRNO_EXIST;
  if (flags & __WASI_OFLAGS_DIRECTORY && !is_dir(e)) return __WASI_ERRNO_NOTDIR;
  if (flags & __WASI_OFLAGS_TRUNC || (!is_dir(e) && rights & __WASI_RIGHTS_FD_WRITE)) return __WASI_ERRNO_ROFS;
  for (int i = 1; i < OPEN; i++) {
    if (opened[i].entry) continue;
    opened[i].entry = e - entries + 1;
    opened[i].at = 0;
    *new = FIRST + i;
    return 0;
  }
  return __WASI_ERRNO_MFILE;
}

WRAP(path_filestat_get, __wasi_fd_t fd, __wasi_lookupflags_t flags, const char *path, __wasi_filestat_t *stat) {
  if (!OURS(fd)) return REAL(path_filestat_get, fd, flags, path, stat);
  const struct entry *e;
  __wasi_errno_t err = look(fd, path, &e);
  if (!err) describe(e, stat);
  return err;
}

WRAP(path_readlink, __wasi_fd_t fd, const char *path, uint8_t *to, __wasi_size_t n, __wasi_size_t *written) {
  if (!OURS(fd)) return REAL(path_readlink, fd, path, to, n, written);
  const struct entry *e;
  __wasi_errno_t err = look(fd, path, &e);
  return err ? err : __WASI_ERRNO_INVAL; // it is not a link
}

WRAP(fd_close, __wasi_fd_t fd) {
  if (!OURS(fd)) return REAL(fd_close, fd);
  if (!find(fd)) return __WASI_ERRNO_BADF;
  if (fd != FIRST) opened[fd - FIRST].entry = 0;
  return 0;
}

WRAP(fd_filestat_get, __wasi_fd_t fd, __wasi_filestat_t *stat) {
  if (!OURS(fd)) return REAL(fd_filestat_get, fd, stat);
  const struct entry *e = find(fd);
  if (!e) return __WASI_ERRNO_BADF;
  describe(e, stat);
  return 0;
}

WRAP(fd_fdstat_get, __wasi_fd_t fd, __wasi_fdstat_t *stat) {
  if (!OURS(fd)) return REAL(fd_fdstat_get, fd, stat);
  const struct entry *e = find(fd);
  if (!e) return __WASI_ERRNO_BADF;
  memset(stat, 0, sizeof *stat);
  stat->fs_filetype = is_dir(e) ? __WASI_FILETYPE_DIRECTORY : __WASI_FILETYPE_REGULAR_FILE;
  // Writing is among the rights, so that libc asks for it and the answer is that this file system is read-only.
  stat->fs_rights_base = stat->fs_rights_inheriting = ~UINT64_C(0);
  return 0;
}

// copy reads from an offset into buffers.
static __wasi_errno_t copy(__wasi_fd_t fd, const __wasi_iovec_t *to, size_t buffers, uint64_t at, __wasi_size_t *n) {
  const struct entry *e = find(fd);
  if (!e) return __WASI_ERRNO_BADF;
  if (is_dir(e)) return __WASI_ERRNO_ISDIR;
  *n = 0;
  for (size_t i = 0; i < buffers && at < (uint64_t)e->size; i++) {
    uint64_t left = e->size - at, part = to[i].buf_len < left ? to[i].buf_len : left;
    library_read(to[i].buf, e->offset + at, part);
    at += part;
    *n += part;
  }
  return 0;
}

WRAP(fd_read, __wasi_fd_t fd, const __wasi_iovec_t *to, size_t buffers, __wasi_size_t *n) {
  if (!OURS(fd)) return REAL(fd_read, fd, to, buffers, n);
  __wasi_errno_t err = copy(fd, to, buffers, find(fd) ? opened[fd - FIRST].at : 0, n);
  if (!err) opened[fd - FIRST].at += *n;
  return err;
}

WRAP(fd_pread, __wasi_fd_t fd, const __wasi_iovec_t *to, size_t buffers, __wasi_filesize_t at, __wasi_size_t *n) {
  return OURS(fd) ? copy(fd, to, buffers, at, n) : REAL(fd_pread, fd, to, buffers, at, n);
}

WRAP(fd_seek, __wasi_fd_t fd, __wasi_filedelta_t by, __wasi_whence_t whence, __wasi_filesize_t *at) {
  if (!OURS(fd)) return REAL(fd_seek, fd, by, whence, at);
  const struct entry *e = find(fd);
  if (!e) return __WASI_ERRNO_BADF;
  if (is_dir(e) || whence > __WASI_WHENCE_END) return __WASI_ERRNO_INVAL;
  int64_t from = whence == __WASI_WHENCE_SET ? 0 : whence == __WASI_WHENCE_CUR ? (int64_t)opened[fd - FIRST].at : e->size;
  int64_t next;
  if (__builtin_add_overflow(from, by, &next) || next < 0) return __WASI_ERRNO_INVAL;
  *at = opened[fd - FIRST].at = next;
  return 0;
}

WRAP(fd_tell, __wasi_fd_t fd, __wasi_filesize_t *at) {
  return OURS(fd) ? __wrap___wasi_fd_seek(fd, 0, __WASI_WHENCE_CUR, at) : REAL(fd_tell, fd, at);
}

// The cookie of an entry is its index.
WRAP(fd_readdir, __wasi_fd_t fd, uint8_t *to, __wasi_size_t size, __wasi_dircookie_t cookie, __wasi_size_t *n) {
  if (!OURS(fd)) return REAL(fd_readdir, fd, to, size, cookie, n);
  const struct entry *dir = find(fd);
  if (!dir) return __WASI_ERRNO_BADF;
  if (!is_dir(dir)) return __WASI_ERRNO_NOTDIR;
  size_t above = strlen(dir->path);
  *n = 0;
  for (uint64_t i = cookie ? cookie : dir - entries + 1; i < ENTRIES && *n < size; i++) {
    const struct entry *e = &entries[i];
    if (e->directory != dir - entries) continue;
    const char *name = e->path + above + (above > 0);
    __wasi_dirent_t head = {.d_next = i + 1, .d_ino = i + 1, .d_namlen = strlen(name),
                            .d_type = is_dir(e) ? __WASI_FILETYPE_DIRECTORY : __WASI_FILETYPE_REGULAR_FILE};
    // An entry that is cut at the end of the buffer is read again, into a larger one.
    size_t part = size - *n < sizeof head ? size - *n : sizeof head;
    memcpy(to + *n, &head, part);
    *n += part;
    part = size - *n < head.d_namlen ? size - *n : head.d_namlen;
    memcpy(to + *n, name, part);
    *n += part;
  }
  return 0;
}

WRAP(fd_advise, __wasi_fd_t fd, __wasi_filesize_t at, __wasi_filesize_t n, __wasi_advice_t advice) {
  return OURS(fd) ? 0 : REAL(fd_advise, fd, at, n, advice);
}

WRAP(fd_fdstat_set_flags, __wasi_fd_t fd, __wasi_fdflags_t flags) {
  return OURS(fd) ? 0 : REAL(fd_fdstat_set_flags, fd, flags);
}

// What changes files is refused.

WRAP(path_create_directory, __wasi_fd_t fd, const char *path) {
  return OURS(fd) ? __WASI_ERRNO_ROFS : REAL(path_create_directory, fd, path);
}

WRAP(path_remove_directory, __wasi_fd_t fd, const char *path) {
  return OURS(fd) ? __WASI_ERRNO_ROFS : REAL(path_remove_directory, fd, path);
}

WRAP(path_unlink_file, __wasi_fd_t fd, const char *path) {
  return OURS(fd) ? __WASI_ERRNO_ROFS : REAL(path_unlink_file, fd, path);
}

WRAP(path_rename, __wasi_fd_t fd, const char *path, __wasi_fd_t to, const char *new) {
  return OURS(fd) || OURS(to) ? __WASI_ERRNO_ROFS : REAL(path_rename, fd, path, to, new);
}

WRAP(path_link, __wasi_fd_t fd, __wasi_lookupflags_t flags, const char *path, __wasi_fd_t to, const char *new) {
  return OURS(fd) || OURS(to) ? __WASI_ERRNO_ROFS : REAL(path_link, fd, flags, path, to, new);
}

WRAP(path_symlink, const char *target, __wasi_fd_t fd, const char *path) {
  return OURS(fd) ? __WASI_ERRNO_ROFS : REAL(path_symlink, target, fd, path);
}

WRAP(path_filestat_set_times, __wasi_fd_t fd, __wasi_lookupflags_t flags, const char *path, __wasi_timestamp_t accessed,
     __wasi_timestamp_t modified, __wasi_fstflags_t which) {
  return OURS(fd) ? __WASI_ERRNO_ROFS : REAL(path_filestat_set_times, fd, flags, path, accessed, modified, which);
}
