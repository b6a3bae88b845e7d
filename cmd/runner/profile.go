//go:build profile

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"
)

// profileTime is how long one profile takes.
const profileTime = 15 * time.Second

// A program that is built with the tag profile writes profiles of its CPU time to the directory
// RUNNER_PROFILES, one after the other. tools/profile.sh merges them.
func init() {
	dir := os.Getenv("RUNNER_PROFILES")
	if dir == "" {
		return
	}
	go func() {
		for i := 0; ; i++ {
			if err := writeProfile(filepath.Join(dir, fmt.Sprintf("%d-%d.pprof", os.Getpid(), i))); err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
				return
			}
		}
	}()
}

// writeProfile gives the file its name when it is complete.
func writeProfile(name string) error {
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	time.Sleep(profileTime)
	pprof.StopCPUProfile()
	return os.Rename(name+".part", name)
}
