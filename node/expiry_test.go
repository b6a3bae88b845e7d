package node_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"runner.example/internal/clock"
	"runner.example/internal/telemetry"
	"runner.example/node"
)

func TestACertificateIsLoggedEachDayForTwoWeeksBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		metrics := telemetry.NewMetrics()
		e := node.NewExpiry(slog.New(slog.NewTextHandler(&log, nil)), clock.System, metrics)
		began := time.Now()
		days := func(n int) *tls.Certificate {
			return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: began.Add(time.Duration(n)*24*time.Hour + time.Hour)}}
		}
		e.Set("front", days(15))
		e.Set("admin", days(100))
		e.Set("admin", nil)
		go e.Run(t.Context())
		for day, want := range []string{
			0:  "",
			1:  "",
			2:  `level=WARN msg="certificate expires soon" listener=front`,
			3:  `days=12`,
			15: `days=0`,
			16: `level=ERROR msg="certificate expired" listener=front`,
			17: `level=ERROR msg="certificate expired" listener=front`,
		} {
			log.Reset()
			if day > 0 {
				<-time.After(24 * time.Hour)
			} else {
				synctest.Wait()
			}
			synctest.Wait()
			if want != "" && !strings.Contains(log.String(), want) || day < 2 && log.Len() > 0 || strings.Count(log.String(), "\n") > 1 {
				t.Errorf("day %d: %q, want %q", day, log.String(), want)
			}
		}
		answer := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"runner_certificate_expiry_seconds{listener=\"front\"} -169200\n", "runner_certificate_expiry_seconds{listener=\"admin\"} 7.1748e+06\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		log.Reset()
		e.Set("front", days(100))
		e.Warn()
		if log.Len() > 0 {
			t.Errorf("a new certificate: %s", log.String())
		}
	})
}
