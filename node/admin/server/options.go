package server

import (
	"crypto/tls"
	"fmt"
	"path/filepath"

	"runner.example/runtime/front"
)

// Options are the settings (package settings) of the admin listener.
type Options struct {
	// Listen is the address of the admin listener, host:port, such as "0.0.0.0:9443". Operators on
	// the network use it with platform keys, which `runner keys` creates. Empty: it is closed.
	Listen string `toml:"admin.listen"`
	// TLSCert is the path of a certificate chain for it in PEM form. A relative path starts from
	// the app directory. Empty: the server creates a certificate in the data directory, whose
	// fingerprint `runner status` shows.
	TLSCert string `toml:"admin.tls_cert" reload:"true"`
	// TLSKey is the path of the private key of TLSCert, in PEM form.
	TLSKey string `toml:"admin.tls_key" reload:"true"`
	// Socket is the absolute path of the admin socket, such as /run/runner/admin.sock. Then runner.sock in the
	// data directory is a link to it, by which commands find it. Empty: the socket is in the data directory.
	Socket string `toml:"admin.socket"`
	// Certificate is what TLSCert and TLSKey contain; nil: neither is set.
	Certificate *tls.Certificate
	// UploadPerHour is how many bytes uploads of releases may store at once, and as much again
	// in each hour.
	UploadPerHour int64 `toml:"admin.upload_per_hour" unit:"size" default:"1gb" min:"32mb" max:"1024gb"`
}

// MaxConnections returns how many connections the admin listener has at the same time; 0: it is closed.
func (o *Options) MaxConnections() int {
	if o.Listen == "" {
		return 0
	}
	return maxRemoteConns
}

// CheckSetting checks the address to listen on, and the path of the socket.
func (o *Options) CheckSetting(key, value string) error {
	if key == "admin.socket" && value != "" && (!filepath.IsAbs(value) || filepath.Clean(value) != value) {
		return fmt.Errorf("%q is not an absolute path of a file, such as /run/runner/admin.sock", value)
	}
	if key == "admin.listen" && value != "" {
		return front.CheckListen(value)
	}
	return nil
}
