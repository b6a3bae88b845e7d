package docs_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

// smuggled are messages that two parsers may split in different ways. \n stands for \r\n, \N
// for \n, {head} for the end of a head with a host, and {evil} for a request.
var smuggled = []string{
	"POST /v1/upload HTTP/1.1{head}Content-Length: 60\nTransfer-Encoding: chunked\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\nContent-Length: 4\n\n31\n{evil}\n0\n\n",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding : chunked\nContent-Length: 60\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding:\tchunked\nContent-Length: 60\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: xchunked\nContent-Length: 60\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked, identity\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: identity, chunked\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\nTransfer-Encoding: identity\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding:\n chunked\nContent-Length: 60\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}X: y\n Transfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}X: y\rTransfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}X: y\\NTransfer-Encoding: chunked\nContent-Length: 5\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer_Encoding: chunked\nContent-Length: 5\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length: 5\nContent_Length: 0\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length: 0\nContent-Length: 60\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length: 0, 60\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length: +0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length: 0x0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length:\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}\x00Content-Length: 60\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Content-Length\x00: 60\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Connection: Content-Length\nContent-Length: 5\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Connection: Transfer-Encoding\nTransfer-Encoding: chunked\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n1;a=\"\n0\n\n\"\na\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n1;a\\Nb\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n1\\Na\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n0x0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n-0\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n10000000000000000\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Transfer-Encoding: chunked\n\n0\nContent-Length: 60\nTransfer-Encoding: chunked\n\n{evil}",
	"POST /v1/upload HTTP/1.1{head}Expect: 100-continue\nContent-Length: 5\n\n0\n\n{evil}",
	"POST /v1/upload HTTP/1.0{head}Connection: keep-alive\nTransfer-Encoding: chunked\n\n0\n\n{evil}",
	"GET /v1/dump HTTP/1.1{head}Content-Length: 5\n\n0\n\n{evil}",
	"GET /v1/dump HTTP/1.1{head}Transfer-Encoding: chunked\n\n0\n\n{evil}",
	"HEAD /v1/dump HTTP/1.1{head}Content-Length: 5\n\n0\n\n{evil}",
	"OPTIONS /v1/dump HTTP/1.1{head}Content-Length: 5\n\n0\n\n{evil}",
	"POST /v1/nowhere HTTP/1.1{head}Content-Length: 49\n\n{evil}",
	"POST /v1/session HTTP/1.1{head}Content-Length: 49\n\n{evil}",
	"POST /v1/session HTTP/1.1{head}Transfer-Encoding: chunked\n\n31\n{evil}\n0\n\n",
	"GET /v1/dump HTTP/1.1{head}Upgrade: h2c\nConnection: Upgrade, HTTP2-Settings\nHTTP2-Settings: AAMAAABkAAQAAP__\n\n{evil}",
	"GET /v1/dump HTTP/1.1{head}Upgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\nSec-WebSocket-Version: 13\n\n{evil}",
	"GET /v1/dump?%0d%0a%0d%0aGET%20/v1/evil%20HTTP/1.1 HTTP/1.1{head}\n{evil}",
	"GET /v1/dump%20HTTP/1.1%0d%0aHost:%20x HTTP/1.1{head}\n{evil}",
	"GET /v1/files;a=b/../dump HTTP/1.1{head}\n{evil}",
	"GET //v1/dump HTTP/1.1{head}\n{evil}",
	"GET /v1/%2e%2e/v1/dump HTTP/1.1{head}\n{evil}",
	"\n\nGET /v1/dump HTTP/1.1{head}\n{evil}",
}

// A request within another one is served if the proxy takes it for a request too: then the
// client gets its answer, with the status 204. If both split the bytes
// differently, the runner serves more of them than clients have answers, or a later client
// gets the answer to another request.
func TestNoRequestIsSmuggledThroughAProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for proxies that expect more bytes")
	}
	behindProxies(t, "[telemetry]\naccess_log = true\n", func(s *harness.Server, p *proxied) {
		replacer := strings.NewReplacer("{head}", "\nHost: "+proxiedHost+"\n", "{evil}", "GET /v1/evil HTTP/1.1\nHost: "+proxiedHost+"\n\n")
		others := p.client("127.0.0.3")
		answers := 0
		for i, text := range smuggled {
			raw := strings.ReplaceAll(strings.ReplaceAll(replacer.Replace(text), "\n", "\r\n"), `\N`, "\n")
			raw += "GET /v1/dump HTTP/1.1\r\nHost: " + proxiedHost + "\r\nConnection: close\r\n\r\n"
			answers += p.answersWith204(raw)
			for n := range 3 {
				own := fmt.Sprint(i, ".", n)
				d := harness.ReadDump(p.t, p.do(others, "GET", "/v1/dump?own="+own, ""))
				if len(d.Query) != 1 || d.Query[0][1] != own {
					p.t.Errorf("after %q another client got the answer to %v", raw, d.Query)
				}
			}
		}
		s.Stop()
		if served := strings.Count(s.Stderr.String(), `"status":204`); served != answers || served == 0 {
			p.t.Errorf("the runner served %d inner requests, and the clients got %d answers to them", served, answers)
		}
	})
}

// answersWith204 sends bytes on a connection of its own, and counts the answers with this
// status.
func (p *proxied) answersWith204(raw string) (n int) {
	p.t.Helper()
	conn := p.dialTLS("127.0.0.2")
	defer conn.Close()
	if _, err := io.WriteString(conn, raw); err != nil {
		p.t.Fatal(err)
	}
	method, _, _ := strings.Cut(strings.TrimSpace(raw), " ")
	for r := bufio.NewReader(conn); ; method = "GET" {
		// A proxy that expects more bytes sends nothing.
		if err := conn.SetReadDeadline(time.Now().Add(3 * time.Second)); err != nil {
			p.t.Fatal(err)
		}
		answer, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return n
		}
		if answer.StatusCode == http.StatusNoContent {
			n++
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return n
		}
	}
}
