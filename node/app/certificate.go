package app

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"
)

// readCertificates reads the certificates that [front] and [admin] name, if they are valid at the time now.
// Each error is about one of them.
func (a *App) readCertificates(now time.Time, report func(section string, err error)) {
	front, admin := &a.Config.Runtime.Front, &a.Config.Admin
	for _, pair := range []struct {
		section, cert, key string
		into               **tls.Certificate
	}{
		{"front", front.TLSCert, front.TLSKey, &front.Certificate},
		{"admin", admin.TLSCert, admin.TLSKey, &admin.Certificate},
	} {
		var err error
		if *pair.into, err = a.certificate(pair.section, pair.cert, pair.key, now); err != nil {
			report(pair.section, err)
		}
	}
}

// certificate reads the files of two settings; nil if neither is set.
func (a *App) certificate(section, cert, key string, now time.Time) (*tls.Certificate, error) {
	switch {
	case cert == "" && key == "":
		return nil, nil
	case key == "":
		return nil, fmt.Errorf("[%s] tls_cert is set, and tls_key is not: set both", section)
	case cert == "":
		return nil, fmt.Errorf("[%s] tls_key is set, and tls_cert is not: set both", section)
	}
	pair, err := tls.LoadX509KeyPair(a.path(cert), a.path(key))
	if err != nil {
		return nil, fmt.Errorf("[%s] tls_cert %q with tls_key %q: %s", section, cert, key, strings.TrimPrefix(err.Error(), "tls: "))
	}
	date := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		return nil, fmt.Errorf("[%s] tls_cert %q: the certificate expired at %s: replace it", section, cert, date(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("[%s] tls_cert %q: the certificate is not valid before %s: replace it, or correct the clock of this machine, which shows %s",
			section, cert, date(leaf.NotBefore), date(now))
	}
	return &pair, nil
}
