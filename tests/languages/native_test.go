package languages_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

const nativeC = `#include "runner.h"

RUNNER_HANDLER(fetchOne) {
  runner_json *answer = runner_fetch(runner_object("url", runner_string(runner_raw_body()), "method", runner_str("PUT"),
      "body", runner_bytes((runner_text){"\xff\0x", 3}), NULL));
  runner_text bytes = runner_as_bytes(runner_member(answer, "body"));
  return runner_ok(runner_object("status", runner_member(answer, "status"), "bytes", runner_int((int64_t)bytes.len),
      "last", runner_int(bytes.len ? (unsigned char)bytes.data[bytes.len - 1] : -1), NULL));
}
`

const nativeCxx = `#include "runner.hpp"

// The service answers when it has received both requests.
RUNNER_HANDLER(fetchAll) {
  std::string origin = runner::Request().raw_body();
  auto answers = runner::fetch_all({{origin + "/both"}, {origin + "/both", "POST", {{"x-a", "1"}}, "body"}});
  return runner::ok(runner::array({answers[0].body, answers[1].body, answers[1].status}));
}

RUNNER_HANDLER(busyFetch) { return runner::no_content(); }
RUNNER_HANDLER(countedFetch) { return runner::no_content(); }
RUNNER_HANDLER(bump) {
  auto sum = runner::hmac("SHA-256", "key", "The quick brown fox jumps over the lazy dog");
  return runner::ok(runner::object({{"hmac", sum.hex}, {"same", runner::timing_safe_equal(sum.hex, sum.hex)},
      {"other", runner::timing_safe_equal(sum.hex, "x")}, {"digest", runner::digest("SHA-256", "\xff").base64}}));
}
`

func TestHandlersInCAndCxxCallOtherServices(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	origin, certificate := harness.OtherService(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/both":
			both.Done()
			both.Wait()
			fmt.Fprint(w, r.Method, r.Header.Get("X-A"), string(body))
		default:
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write(append(body, 0xfe))
		}
	})
	a := harness.NewApp(t, fmt.Sprintf(harness.OutboundSchema, origin), "[outbound]\nallow_private = true\n")
	a.Write("handlers/native/one.c", nativeC)
	a.Write("handlers/native/all.cc", nativeCxx)
	a.Write("roots.pem", certificate)
	a.Env = []string{"SSL_CERT_FILE=" + a.Path("roots.pem")}
	a.Must("build")
	s := a.Serve()
	token := a.Token("worker")
	s.Matches(200, `\{"status":202,"bytes":4,"last":254\}`, "POST", "/one", origin+"/x", token)
	s.Matches(500, `.*"code":"handler_failed".*`, "POST", "/one", "https://example.com/", token)
	s.Matches(200, `\["GET","POST1body",200\]`, "POST", "/all", origin, token)
	s.Matches(200, `\{"hmac":"f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8","same":true,"other":false,"digest":"qBAK5qoZQNC2Y7sxzUZhQuu9vVGHExuS2TgYmHgy64k="\}`, "POST", "/bump", "", token)
}
