package netaddr

import (
	"fmt"
	"net"
	"strconv"
)

// ValidPort reports whether text is a port that a client can connect to: 1 to 65535, without leading zeros.
func ValidPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0 && text == strconv.FormatUint(n, 10)
}

// CheckListen returns an error if address is not host:port to listen on. The port 0 takes a free one. The
// error shows example.
func CheckListen(address, example string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address to listen on: write host:port, such as %s, with a port of at most 65535", address, example)
	}
	return nil
}
