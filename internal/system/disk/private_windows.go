package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func checkOwner(dir string) error {
	descriptor, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return &fs.PathError{Op: "read the owner of", Path: dir, Err: err}
	}
	owner, _, err := descriptor.Owner()
	if err != nil || owner == nil { // the file system has no owners
		return nil
	}
	allowed, err := trusted()
	if err != nil {
		return err
	}
	if !contains(allowed, owner) {
		return fmt.Errorf(
			"the directory belongs to %s, who may always change its access control list: use another directory, or give this one and its content to this user (icacls /setowner, with /T)",
			nameOf(owner))
	}
	return nil
}

// trusted returns the user of this process, the system and the administrators.
func trusted() ([]*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	system, err := windows.CreateWellKnownSid(windows.WinLocalSystemSid)
	if err != nil {
		return nil, err
	}
	administrators, err := windows.CreateWellKnownSid(windows.WinBuiltinAdministratorsSid)
	return []*windows.SID{user.User.Sid, system, administrators}, err
}

func createPrivate(path string) (*os.File, error) {
	file, err := createFor(path)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	return file, nil
}

// createFor creates a file with its access control list. Who opened it before it has one could read it later.
func createFor(path string) (*os.File, error) {
	list, err := privateList(windows.NO_INHERITANCE)
	if err != nil {
		return nil, err
	}
	descriptor, err := windows.NewSecurityDescriptor()
	if err != nil {
		return nil, err
	}
	err = errors.Join(descriptor.SetDACL(list, true, false),
		descriptor.SetControl(windows.SE_DACL_PROTECTED, windows.SE_DACL_PROTECTED))
	if err != nil {
		return nil, err
	}
	rights := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	rights.Length = uint32(unsafe.Sizeof(*rights))
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		rights, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), path), nil
}

// privateList returns the access control list of a private file or directory.
func privateList(inheritance uint32) (*windows.ACL, error) {
	sids, err := trusted()
	if err != nil {
		return nil, err
	}
	var entries []windows.EXPLICIT_ACCESS
	for _, sid := range sids {
		entries = append(entries, windows.EXPLICIT_ACCESS{
			AccessPermissions: windows.GENERIC_ALL,
			AccessMode:        windows.GRANT_ACCESS,
			Inheritance:       inheritance,
			Trustee:           windows.TRUSTEE{TrusteeForm: windows.TRUSTEE_IS_SID, TrusteeValue: windows.TrusteeValueFromSID(sid)},
		})
	}
	return windows.ACLFromEntries(entries, nil)
}

func makePrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	inheritance := uint32(windows.NO_INHERITANCE)
	if info.IsDir() {
		inheritance = windows.SUB_CONTAINERS_AND_OBJECTS_INHERIT
	}
	list, err := privateList(inheritance)
	if err == nil {
		err = windows.SetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
			windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, list, nil)
	}
	if err != nil {
		return &fs.PathError{Op: "set the access control list of", Path: path, Err: err}
	}
	return nil
}

func makeTreePrivate(dir string) error {
	if err := makePrivate(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func checkPrivate(path string) error {
	descriptor, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return &fs.PathError{Op: "read the access control list of", Path: path, Err: err}
	}
	list, _, err := descriptor.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || err == nil && list == nil {
		return errors.New("is accessible to everyone, since it has no access control list: move it to a file system that has these lists, such as NTFS")
	}
	if err != nil {
		return &fs.PathError{Op: "read the access control list of", Path: path, Err: err}
	}
	allowed, err := trusted()
	if err != nil {
		return err
	}
	if owner, _, err := descriptor.Owner(); err == nil && owner != nil {
		allowed = append(allowed, owner)
	}
	for i := range uint32(list.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &entry); err != nil {
			return err
		}
		if entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || entry.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 {
			continue
		}
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		if !contains(allowed, sid) {
			return fmt.Errorf("is accessible to users other than its owner (%s): run icacls on it, with /inheritance:r and /grant:r for your user",
				nameOf(sid))
		}
	}
	return nil
}

func contains(all []*windows.SID, sid *windows.SID) bool {
	for _, s := range all {
		if s.Equals(sid) {
			return true
		}
	}
	return false
}

// nameOf returns the name of a user or group for people.
func nameOf(sid *windows.SID) string {
	account, domain, _, err := sid.LookupAccount("")
	switch {
	case err != nil:
		return sid.String()
	case domain == "":
		return account
	}
	return domain + `\` + account
}
