package process

import "golang.org/x/sys/windows"

func yieldToOthers() {
	_ = windows.SetPriorityClass(windows.CurrentProcess(), windows.BELOW_NORMAL_PRIORITY_CLASS)
}
