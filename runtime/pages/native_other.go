//go:build !linux

package pages

func openNative() System { return portableSystem{} }
