package hostabi_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"runner.example/hostabi"
	"runner.example/hostabi/abi"
)

// asProgram makes the guest a program that has opened the host's file, with a request.
func asProgram(t testing.TB, limits hostabi.Limits) (g *guest, file uint64) {
	t.Helper()
	g = newGuest(t, limits)
	return g, g.reopen(t)
}

func (g *guest) reopen(t testing.TB) uint64 {
	t.Helper()
	g.call.BeginProgram(&hostabi.Program{Args: []string{"program"}, Root: hostabi.NewRoot()})
	fd, errno := g.open(rootFile, hostabi.HostFile, 0)
	if errno != wasiOK {
		t.Fatalf("open %s: %d", hostabi.HostFile, errno)
	}
	return fd
}

// Where the parts of reads and writes are listed, and their bytes.
const (
	partsAt = 30_000
	bytesAt = 32_768
)

// writeTo writes text to a file, in parts that end at the cuts.
func (g *guest) writeTo(t testing.TB, file uint64, text string, cuts ...int) {
	t.Helper()
	from := 0
	for _, to := range append(cuts, len(text)) {
		part := text[from:to]
		from = to
		g.module.Memory().Write(bytesAt, []byte(part))
		g.module.Memory().WriteUint64Le(partsAt, uint64(len(part))<<32|bytesAt)
		if errno := g.system("fd_write", file, partsAt, 1, resultAt); errno != wasiOK {
			t.Fatalf("fd_write: %d", errno)
		}
		if n, _ := g.module.Memory().ReadUint32Le(resultAt); int(n) != len(part) {
			t.Fatalf("fd_write wrote %d of %d bytes", n, len(part))
		}
	}
}

// readFrom reads all that a file has, so many bytes at a time.
func (g *guest) readFrom(t testing.TB, file, room uint64) (all string) {
	t.Helper()
	for {
		g.module.Memory().WriteUint64Le(partsAt, room<<32|bytesAt)
		if errno := g.system("fd_read", file, partsAt, 1, resultAt); errno != wasiOK {
			t.Fatalf("fd_read: %d", errno)
		}
		n, _ := g.module.Memory().ReadUint32Le(resultAt)
		if n == 0 {
			return all
		}
		all += string(g.at(bytesAt, n))
	}
}

func message(head, payload string) string {
	return fmt.Sprintf("%s %d\n%s", head, len(payload), payload)
}

// The parts of an answer in parts are messages too. Here they become an answer as a whole.
func TestMessagesAnswerInParts(t *testing.T) {
	g, file := asProgram(t, hostabi.Limits{ResponseBytes: 20})
	for _, row := range [][2]string{
		{message("response_write", "early"), "invalid 0\n"},
		{message("response_begin 204", ""), "invalid 0\n"},
		{message("response_begin", ""), "invalid "},
		{message("response_begin 201", ""), "ok 1\n0"},
		{message("response_begin 201", ""), "invalid 0\n"},
		{message("response_write", "hello, "), "ok 1\n0"},
		{message("response_write", "a\nb") + message("response_write", ""), "ok 1\n0ok 1\n0"},
		{message("response_write", strings.Repeat("x", 20)), "too_large 0\n"},
		{message("response_send 200", "other"), "invalid 0\n"},
		{message("response_header", "x-late\n1"), "invalid 0\n"},
	} {
		g.writeTo(t, file, row[0])
		if got := g.readFrom(t, file, 1000); !strings.HasPrefix(got, row[1]) {
			t.Errorf("%q answers %q, want %q", row[0], got, row[1])
		}
	}
	if r := &g.call.Response; r.Status != 201 || string(r.Body) != "hello, a\nb" {
		t.Errorf("the answer is %d %q", r.Status, r.Body)
	}
}

// The bytes of a message count once: arguments of six tenths of the limit fit.
func TestBytesOfMessagesCountOnce(t *testing.T) {
	const limit = 10_000
	g, file := asProgram(t, hostabi.Limits{MovedBytes: limit})
	text := message("digest", `{"algorithm":"SHA-256","data":"`+strings.Repeat("a", limit*6/10)+`"}`)
	g.writeTo(t, file, text)
	answer := g.readFrom(t, file, 1000)
	if !strings.HasPrefix(answer, "ok ") {
		t.Fatalf("%s", answer)
	}
	want := len(text) + len(answer) - len(g.call.Request.Body) // so many are free
	if moved := g.call.Moved(); moved != want {
		t.Errorf("%d bytes have moved, want %d", moved, want)
	}
	g.writeTo(t, file, text)
	if answer := g.readFrom(t, file, 1000); !strings.HasPrefix(answer, "limit ") {
		t.Errorf("beyond the limit: %s", answer)
	}
}

func TestTheHostsFileDoesWhatTheFunctionsDo(t *testing.T) {
	g, file := asProgram(t, hostabi.Limits{})
	g.call.Request.Body = []byte(strings.Repeat("a body ", 20_000))
	for _, row := range []struct{ head, payload, want string }{
		{"request_method", "", "ok 4\nPOST"},
		{"request_param", "id", ""},
		{"request_header", "no-such", "not_found 0\n"},
		{"request_body 7", "", fmt.Sprintf("ok %d\n%s", 7*19_999, strings.Repeat("a body ", 19_999))},
		{"secret", `{"name":"SIGNING_KEY"}`, "ok 18\n{\"value\":\"s3cr3t\"}"},
		{"secret", `{"name":"NOPE"}`, "denied "},
		{"insert", `{"into":"Nothing","values":{}}`, "invalid "},
		{"nothing", `{}`, "invalid "},
		{"call_start", "secret\n" + `{"name":"SIGNING_KEY"}`, "ok 1\n0"},
		{"call_wait", "", "ok 1\n0"},
		{"call_take 0", "", "ok 18\n{\"value\":\"s3cr3t\"}"},
		{"call_take 0", "", "invalid "},
		{"call_wait", "", "not_found 0\n"},
		{"response_header", "x-a\nb\nc", "denied 0\n"},
		{"response_header", "x-a\nb", "ok 1\n0"},
		{"keep_writes", "", "ok 1\n0"},
		{"log 1", "hello\nyou", "ok 1\n0"},
		{"response_send 201", "", "ok 1\n0"},
		{"response_send 201", "twice", "invalid 0\n"},
		{"request_next", "", "denied 0\n"},
		// messages that cannot be read
		{"request_method 1", "", "invalid "}, {"response_send", "x", "invalid "}, {"request_method", "x", "invalid "},
		{"request_param", "", "not_found 0\n"}, {"response_header", "x", "invalid "}, {"log x", "y", "invalid "},
		{"", "", "invalid "}, {strings.Repeat("n", 300), "", "invalid "},
	} {
		g.writeTo(t, file, message(row.head, row.payload))
		got := g.readFrom(t, file, 5000)
		if row.want == "" {
			continue
		}
		if !strings.HasPrefix(got, row.want) || strings.HasSuffix(row.want, "\n") && got != row.want {
			t.Errorf("%s %q: %.200q, want %.200q", row.head, row.payload, got, row.want)
		}
		checkAnswer(t, got)
	}
	if r := g.call.Response; r.Status != 201 || len(r.Headers) != 1 || string(r.Headers[0].Value) != "b" {
		t.Errorf("the answer is %d with %q", r.Status, r.Headers)
	}
}

// checkAnswer checks that text is one answer.
func checkAnswer(t testing.TB, text string) {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n")
	status, length, _ := strings.Cut(head, " ")
	if n, err := strconv.Atoi(length); err != nil || n != len(body) || status == "" {
		t.Errorf("the answer %.100q has %d bytes behind its first line", text, len(body))
	}
}

// Each function of the table does the same with the same arguments, called directly and through the file.
func TestEachFunctionHasTheSameResultThroughTheFile(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	direct, _ := asProgram(t, hostabi.Limits{HostCalls: 1 << 20})
	through, file := asProgram(t, hostabi.Limits{HostCalls: 1 << 20})
	texts := []string{"", "x", "id", "secret", `{"name":"SIGNING_KEY"}`, "content-type", "\xff", "ä"}
	for range 2000 {
		f := abi.Functions()[r.IntN(len(abi.Functions()))]
		if f.Name == "call_result" || f.Name == "call" { // whose results are read at once
			continue
		}
		var words []any
		head, payload, room := f.Name, []string{}, false
		for _, p := range f.Params {
			switch p.Kind {
			case abi.Number:
				n := []int{-1, 0, 1, 2, 200, 404}[r.IntN(6)]
				words = append(words, n)
				head += fmt.Sprint(" ", n)
			case abi.Buffer:
				room = true
			default:
				text := texts[r.IntN(len(texts))]
				words, payload = append(words, text), append(payload, text)
			}
		}
		through.writeTo(t, file, message(head, strings.Join(payload, "\n")))
		got := through.readFrom(t, file, 1000)
		checkAnswer(t, got)
		status, body, _ := strings.Cut(got, "\n")
		status, _, _ = strings.Cut(status, " ")
		want, text := "ok", ""
		if room {
			var n int32
			if text, n = direct.get(f.Name, words...); n < 0 {
				want, text = abi.Errno(n).String(), ""
			}
		} else if n := direct.do(f.Name, words...); n < 0 {
			want = abi.Errno(n).String()
		}
		if status != want || room && body != text {
			t.Fatalf("%s %q through the file: %s %q; called: %s %q", head, payload, status, body, want, text)
		}
	}
}

func TestAMessageMayBeWrittenInPartsAndMessagesTogether(t *testing.T) {
	g, file := asProgram(t, hostabi.Limits{HostCalls: 1 << 20})
	one := message("secret", `{"name":"SIGNING_KEY"}`)
	answer := "ok 18\n{\"value\":\"s3cr3t\"}"
	for cut := range len(one) {
		g.writeTo(t, file, one, cut)
		if got := g.readFrom(t, file, 3); got != answer {
			t.Fatalf("cut at %d: %q", cut, got)
		}
	}
	g.writeTo(t, file, one+message("request_method", "")+one)
	if got := g.readFrom(t, file, 1000); got != answer+"ok 4\nPOST"+answer {
		t.Errorf("three messages in one write: %q", got)
	}
	second, errno := g.open(rootFile, hostabi.HostFile, 0)
	if errno != wasiOK {
		t.Fatal(errno)
	}
	g.writeTo(t, file, one)
	if got := g.readFrom(t, second, 1000); got != answer {
		t.Errorf("the answer, read from another descriptor: %q", got)
	}
	g.writeTo(t, file, "secret 99999999\n")
	if got := g.readFrom(t, file, 1000); !strings.HasPrefix(got, "invalid ") {
		t.Errorf("a message of 99,999,999 bytes: %q", got)
	}
	g.writeTo(t, file, one)
	if got := g.readFrom(t, file, 1000); got != answer {
		t.Errorf("after a refused message: %q", got)
	}
	if errno := g.system("fd_seek", file, 0, 0, resultAt); errno != wasiSeekPipe {
		t.Errorf("fd_seek: %d", errno)
	}
}

func TestTheBudgetCountsMessages(t *testing.T) {
	g, file := asProgram(t, hostabi.Limits{HostCalls: 3})
	for i := range 5 {
		g.writeTo(t, file, message("request_method", ""))
		want := "ok 4\nPOST"
		if i >= 3 {
			want = "limit 0\n"
		}
		if got := g.readFrom(t, file, 100); got != want {
			t.Errorf("message %d: %q, want %q", i+1, got, want)
		}
	}
	g.writeTo(t, file, message("response_send 200", "done"))
	if got := g.readFrom(t, file, 100); got != "ok 1\n0" {
		t.Errorf("the answer: %q", got)
	}
}

// FuzzHostFile: whatever is written, the answers are well formed, and the host goes on.
// A few bytes that are refused have a long answer. A program that writes them and never reads is ended.
func TestAProgramThatNeverReadsItsAnswersIsEnded(t *testing.T) {
	for _, text := range []string{strings.Repeat("a 0\n", 8000), strings.Repeat("x", 300)} {
		t.Run(text[:4], func(t *testing.T) {
			g, file := asProgram(t, hostabi.Limits{HostCalls: 1, MovedBytes: 1 << 30})
			defer func() {
				err, ok := recover().(error)
				if !ok || !strings.Contains(err.Error(), "has not read") || g.call.HostFailed() {
					t.Errorf("it is ended by %v, host failed: %v", err, g.call.HostFailed())
				}
			}()
			for range 200_000 {
				g.writeTo(t, file, text)
			}
			t.Error("it is not ended")
		})
	}
}

// A program that reads, but never all, has no more unread than what it leaves.
func TestAnswersThatWereReadAreForgotten(t *testing.T) {
	g, file := asProgram(t, hostabi.Limits{HostCalls: 1 << 20, MovedBytes: 1 << 30})
	answer := "ok 4\nPOST"
	g.writeTo(t, file, message("request_method", ""))
	text := strings.Repeat(message("request_method", ""), 1000)
	for i := range 1000 { // their answers are 9 MB
		g.writeTo(t, file, text)
		g.module.Memory().WriteUint64Le(partsAt, uint64(1000*len(answer))<<32|bytesAt)
		if errno := g.system("fd_read", file, partsAt, 1, resultAt); errno != wasiOK {
			t.Fatalf("fd_read: %d", errno)
		}
		if got := string(g.at(bytesAt, uint32(1000*len(answer)))); got != strings.Repeat(answer, 1000) {
			t.Fatalf("round %d reads %.100q", i, got)
		}
	}
	if got := g.readFrom(t, file, 100); got != answer {
		t.Errorf("it has left %q, want %q", got, answer)
	}
}

func FuzzHostFile(f *testing.F) {
	g, _ := asProgram(f, hostabi.Limits{HostCalls: 1 << 30, MovedBytes: 1 << 40})
	f.Add([]byte(message("request_method", "")), uint16(3))
	f.Add([]byte(message("response_header", "a\nb")+message("log 1", "x")), uint16(9))
	f.Add([]byte(message("query", `{"from":"Order"}`)), uint16(1))
	f.Add([]byte("request_body 0 0\nsecret 3\n{}"), uint16(20))
	f.Add([]byte("call_start 9\nsecret\n{}call_take 0 0\n"), uint16(4))
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		if len(text) > 20_000 {
			return
		}
		g.t = t
		g.call.Begin()
		file := g.reopen(t)
		g.writeTo(t, file, string(text), min(int(cut), len(text)))
		all := g.readFrom(t, file, 700)
		for all != "" {
			head, rest, ok := strings.Cut(all, "\n")
			status, length, _ := strings.Cut(head, " ")
			n, err := strconv.Atoi(length)
			if !ok || status == "" || err != nil || n < 0 || n > len(rest) {
				t.Fatalf("%q is not an answer", all)
			}
			all = rest[n:]
		}
	})
}
