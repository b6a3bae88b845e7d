package system

import "runtime"

// Platform names the system and the processor that this binary was built for, such as linux/amd64.
const Platform = runtime.GOOS + "/" + runtime.GOARCH
