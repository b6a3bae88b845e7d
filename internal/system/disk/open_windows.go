package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

const (
	noWait   = 0
	noFollow = windows.FILE_FLAG_OPEN_REPARSE_POINT
)

func open(path string, flag int, _ fs.FileMode) (*os.File, error) {
	file, err := create(path, flag)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return file, nil
}

func create(path string, flag int) (*os.File, error) {
	if flag&(os.O_APPEND|os.O_TRUNC) != 0 {
		return nil, errors.ErrUnsupported
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	access := uint32(windows.GENERIC_READ)
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	case os.O_RDWR:
		access = windows.GENERIC_READ | windows.GENERIC_WRITE
	}
	create := uint32(windows.OPEN_EXISTING)
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		create = windows.CREATE_NEW
	case flag&os.O_CREATE != 0:
		create = windows.OPEN_ALWAYS
	}
	attributes := uint32(windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_BACKUP_SEMANTICS) // directories, too
	attributes |= uint32(flag) & noFollow
	handle, err := windows.CreateFile(name, access, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, create, attributes, 0)
	if err != nil {
		return nil, err
	}
	if flag&noFollow != 0 {
		var info windows.ByHandleFileInformation
		err := windows.GetFileInformationByHandle(handle, &info)
		if err == nil && info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 {
			err = syscall.ELOOP
		}
		if err != nil {
			_ = windows.CloseHandle(handle)
			return nil, err
		}
	}
	return os.NewFile(uintptr(handle), path), nil
}
