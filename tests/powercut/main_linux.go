package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	keep := flag.Uint64("keep", 0, "at SIGTERM, half of the pages that were not synced reach the disk, chosen by this seed")
	flag.Parse()
	if flag.NArg() != 3 {
		fmt.Fprintln(os.Stderr, "powercut: want DISK LIVE MOUNT")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), flag.Arg(2), *keep); err != nil {
		fmt.Fprintln(os.Stderr, "powercut:", err)
		os.Exit(1)
	}
}

func run(disk, live, mount string, keep uint64) error {
	if err := os.RemoveAll(live); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", "--sparse=always", disk, live).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", disk, err, out)
	}
	var root syscall.Stat_t
	if err := syscall.Stat(live, &root); err != nil {
		return err
	}
	v, err := newVolume(disk, live)
	if err != nil {
		return err
	}
	v.live = fs.LoopbackRoot{Path: live, Dev: uint64(root.Dev)}
	top := &node{LoopbackNode: &fs.LoopbackNode{RootData: &v.live}, volume: v}
	v.live.RootNode = top
	second := time.Second
	_, err = fs.Mount(mount, top, &fs.Options{
		AttrTimeout: &second, EntryTimeout: &second,
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "powercut", Name: "powercut", MaxWrite: 1 << 20, ExplicitDataCacheControl: true},
	})
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println("mounted") // from now on the power may be cut
	<-stop
	v.mu.Lock() // until the process ends
	if keep != 0 {
		if err := v.keepSome(rand.New(rand.NewPCG(keep, 0))); err != nil {
			return err
		}
	}
	return nil // it stays mounted, and all calls fail from now on
}
