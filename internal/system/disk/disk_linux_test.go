package disk_test

import (
	"testing"

	"runner.example/internal/system/disk"
)

func TestAMountPointIsFound(t *testing.T) {
	if mounted, err := disk.IsMountPoint("/proc"); !mounted || err != nil {
		t.Errorf("/proc: %v, %v", mounted, err)
	}
}
