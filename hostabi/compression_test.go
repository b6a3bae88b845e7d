package hostabi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"runtime"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

// compress writes data to a new stream, and returns its output.
func compress(t *testing.T, g *guest, format string, decompress bool, data []byte) []byte {
	t.Helper()
	result, n := g.op("compression.open", fmt.Sprintf(`{"format":%q,"decompress":%v}`, format, decompress))
	if n < 0 {
		t.Fatalf("%s: %v", format, result)
	}
	var all []byte
	stream, in := result["stream"], base64.StdEncoding.EncodeToString(data)
	for {
		result, n = g.op("compression.write", fmt.Sprintf(`{"stream":%v,"data":{"base64":%q},"end":true}`, stream, in))
		if n < 0 {
			t.Fatalf("%s: %v", format, result)
		}
		out, _ := base64.StdEncoding.DecodeString(result["data"].(map[string]any)["base64"].(string))
		all = append(all, out...)
		if result["more"] != true {
			return all
		}
		in = ""
	}
}

func TestAStreamIsCompressedAndDecompressed(t *testing.T) {
	for _, format := range []string{"gzip", "deflate", "deflate-raw", "brotli"} {
		g := newGuest(t, hostabi.Limits{})
		text := make([]byte, 20_000)
		packed := compress(t, g, format, false, text)
		if got := compress(t, g, format, true, packed); len(packed) > 200 || string(got) != string(text) {
			t.Errorf("%s: %d bytes become %d", format, len(packed), len(got))
		}
	}
}

func TestAStreamOutOfPlaceIsRefused(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	for range 2 {
		if result, n := g.op("compression.open", `{"format":"gzip","decompress":true}`); n < 0 {
			t.Fatal(result)
		}
	}
	for _, c := range []struct{ op, args, want string }{
		{"compression.open", `{}`, `compression.open: member "format" is missing`},
		{"compression.open", `{"format":"zip"}`, `compression.open: the format must be gzip, deflate, deflate-raw, brotli, not "zip"`},
		{"compression.open", `{"format":"gzip","decompress":1}`, `compression.open: member "decompress" must be true or false`},
		{"compression.write", `{"data":""}`, `compression.write: member "stream" is missing`},
		{"compression.write", `{"stream":3,"data":""}`, `compression.write: member "stream" is not the number of an open stream`},
		{"compression.write", `{"stream":1,"data":1}`, `compression.write: member "data" must be a string or {"base64":"…"}`},
		{"compression.write", `{"stream":1,"end":1}`, `compression.write: member "end" must be true or false`},
		{"compression.write", `{"stream":1,"data":"text"}`, ""},
		{"compression.write", `{"stream":1,"data":"more than ten bytes"}`, `compression.write: the input is malformed`},
		{"compression.write", `{"stream":1,"data":""}`, `compression.write: member "stream" is not the number of an open stream`},
		{"compression.close", `{}`, `compression.close: member "stream" is missing`},
		{"compression.close", `{"stream":2}`, ""},
		{"compression.close", `{"stream":2}`, ""},
		{"compression.write", `{"stream":2}`, `compression.write: member "stream" is not the number of an open stream`},
	} {
		if result, n := g.op(c.op, c.args); (n < 0) != (c.want != "") || n < 0 && result["message"] != c.want {
			t.Errorf("%s %s: %d %v, want %s", c.op, c.args, n, result, c.want)
		}
	}
}

func TestTheStreamsOfARequestHaveALimitAndEndWithIt(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	before := runtime.NumGoroutine()
	opened := 0
	for ; ; opened++ {
		result, n := g.op("compression.open", `{"format":"brotli","decompress":true}`)
		if n < 0 {
			if want := "compression.open: the compressed streams of a request may take 48 MiB: end or close one first"; result["message"] != want {
				t.Errorf("%v, want %s", result, want)
			}
			break
		}
		g.op("compression.write", fmt.Sprintf(`{"stream":%v,"data":{"base64":"iwA="}}`, result["stream"]))
	}
	g.call.End()
	for range 1_000_000 { // a goroutine that returns is counted for a moment
		if runtime.NumGoroutine() <= before {
			break
		}
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); opened != 2 || after > before {
		t.Errorf("%d streams are open; %d goroutines before, %d after the request", opened, before, after)
	}
	g.call.Begin()
	if result, n := g.op("compression.write", `{"stream":1}`); n >= 0 {
		t.Errorf("the next request writes to a stream: %v", result)
	}
}

func TestStreamsTakeMemoryOfTheHandlers(t *testing.T) {
	g := newGuest(t, hostabi.Limits{})
	sandbox := &recordingSandbox{most: 3 << 20}
	g.sandbox = sandbox
	open := func() (float64, any) {
		result, _ := g.op("compression.open", `{"format":"gzip"}`)
		number, _ := result["stream"].(float64)
		return number, result["message"]
	}
	first, _ := open()
	open()
	open()
	if want := "compression.open: the memory of all handlers is used up: another stream needs 1024 KiB"; sandbox.held != 3<<20 {
		t.Errorf("three streams hold %d bytes", sandbox.held)
	} else if _, message := open(); message != want {
		t.Errorf("the fourth: %v, want %s", message, want)
	}
	g.op("compression.close", fmt.Sprintf(`{"stream":%v}`, first))
	if sandbox.held != 2<<20 {
		t.Errorf("two streams hold %d bytes", sandbox.held)
	}
	g.call.End()
	if sandbox.held != 0 {
		t.Errorf("%d bytes are held after the request", sandbox.held)
	}
}

func TestDecompressedDataCountsAsMoved(t *testing.T) {
	const moved = 500_000
	g := newGuest(t, hostabi.Limits{MovedBytes: moved})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 5_000_000))
	_ = z.Close()
	result, _ := g.op("compression.open", `{"format":"gzip","decompress":true}`)
	in := base64.StdEncoding.EncodeToString(packed.Bytes())
	read := 0
	for {
		n := g.do("call", "compression.write", fmt.Sprintf(`{"stream":%v,"data":{"base64":%q}}`, result["stream"], in))
		for offset := int32(0); n >= 0 && offset < n; offset += roomBytes {
			if rest := g.raw("call_result", uint32(offset), room, roomBytes); rest < 0 {
				n = rest
			} else {
				read += int(min(rest, roomBytes))
			}
		}
		if n == int32(abi.Limit) {
			break
		}
		if n < 0 || read > moved {
			t.Fatalf("%d after %d bytes", n, read)
		}
		in = ""
	}
}
