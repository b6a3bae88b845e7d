//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processes returns a process and those that it and its children have started.
func processes(pid int) ([]int, error) {
	all := []int{pid}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(children)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			below, err := processes(child)
			if err != nil {
				return nil, err
			}
			all = append(all, below...)
		}
	}
	return all, nil
}

// cpuTime is the CPU time that a process has used, without its children.
func cpuTime(pid int) (time.Duration, error) {
	var now unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|2), &now) // the kernel's number of the process's clock
	return time.Duration(now.Nano()), err
}

// cpuTimeOfAll is the CPU time that a process and its children have used.
func cpuTimeOfAll(pid int) (whole time.Duration, err error) {
	all, err := processes(pid)
	if err != nil {
		return 0, err
	}
	for _, pid := range all {
		one, err := cpuTime(pid)
		if err != nil {
			return 0, err
		}
		whole += one
	}
	return whole, nil
}

// memory is what processes hold, in KiB.
type memory struct {
	resident     float64 // pages that several processes share count in each
	proportional float64 // each of the processes that share a page counts its part
}

// memoryOf is the memory of a process and its children.
func memoryOf(pid int) (whole memory, err error) {
	all, err := processes(pid)
	if err != nil {
		return memory{}, err
	}
	for _, pid := range all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return memory{}, err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) < 2 {
				continue
			}
			n, _ := strconv.ParseFloat(fields[1], 64) // the first line has no number
			switch fields[0] {
			case "Rss:":
				whole.resident += n
			case "Pss:":
				whole.proportional += n
			}
		}
	}
	return whole, nil
}
