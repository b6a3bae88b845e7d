package front_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"runner.example/hostabi/abi"
	"runner.example/runtime/front"
)

// littleBuffer has the kernel take little of what is not read.
func littleBuffer(option int) func(string, string, syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, 32<<10) })
	}
}

// patterns answers with as many bytes as the path says, which are a function of their
// place and the query.
func patterns(x *front.Exchange) {
	n, _ := strconv.Atoi(string(x.Request.Path[1:]))
	seed, _ := strconv.Atoi(string(x.Request.RawQuery))
	body := make([]byte, n)
	if seed%2 == 1 {
		if body = x.BodyMemory(n); body == nil {
			x.Send(&abi.Response{Status: 503})
			return
		}
	}
	for i := 0; i < n; i += page {
		copy(body[i:], pattern(seed, i))
	}
	x.Send(&abi.Response{Status: 200, Body: body})
}

// page is as long as a pattern.
const page = 4 << 10

var pages = func() (all [256][]byte) {
	for i := range all {
		all[i] = bytes.Repeat([]byte{byte(i)}, page)
	}
	return all
}()

// pattern is what stands at i, which a page begins with.
func pattern(seed, i int) []byte { return pages[byte(i/page+seed*7)] }

// whole reads an answer and reports whether it is complete. It fails the test if a byte is
// wrong.
func whole(t testing.TB, r io.Reader, seed int) bool {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(r), nil)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(res.Body)
	for i := 0; i < len(body); i += page {
		if got := body[i:min(i+page, len(body))]; !bytes.Equal(got, pattern(seed, i)[:len(got)]) {
			t.Errorf("the page at %d of %d is another answer's", i, len(body))
			return false
		}
	}
	return err == nil && res.StatusCode == 200
}

// slowly serves patterns on connections of which the kernel takes little.
func slowly(t *testing.T, opt front.Options) (dial func(from string) net.Conn) {
	t.Helper()
	lc := net.ListenConfig{Control: littleBuffer(unix.SO_SNDBUF)}
	ln, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opt.WriteTimeout = time.Hour
	startOn(t, ln, opt, patterns)
	return func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Control: littleBuffer(unix.SO_RCVBUF)}
		nc, err := d.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		if err := nc.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		return nc
	}
}

// untilReadable waits until something of the answer is there.
func untilReadable(t *testing.T, nc net.Conn) {
	t.Helper()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	ready := 0
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			for {
				var failed error
				if ready, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000); failed != unix.EINTR {
					return
				}
			}
		})
	}
	if err != nil || ready == 0 {
		t.Fatalf("no answer within a minute (%v)", err)
	}
}

// untilLeft waits until the server has reset all but n connections, or has closed them after
// a refusal, which happens when the memory of a reset one is not free yet. It gives those n.
func untilLeft(t *testing.T, conns []net.Conn, n int) (left []net.Conn) {
	t.Helper()
	left = slices.Clone(conns)
	for len(left) > n {
		list := make([]unix.PollFd, len(left))
		for i, nc := range left {
			raw, err := nc.(*net.TCPConn).SyscallConn()
			if err == nil {
				err = raw.Control(func(fd uintptr) { list[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP} })
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if ended, err := unix.Poll(list, 60_000); err != nil && err != unix.EINTR || ended == 0 {
			t.Fatalf("%d readers are left, want %d (%v)", len(left), n, err)
		}
		var still []net.Conn
		for i, nc := range left {
			if list[i].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLRDHUP) == 0 {
				still = append(still, nc)
			}
		}
		left = still
	}
	return left
}

func TestUnreadAnswersAreLimitedInAllAndPerAddress(t *testing.T) {
	const answer, room = 8 << 20, 20 << 20 // for two of them
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	type group struct{ from, forwarded string }
	rows := []struct {
		name    string
		opt     front.Options
		callers []group
		left    map[group]int // of those that stay; the empty group: of all
	}{
		{"one address", front.Options{MaxAnswerMemoryPerIP: room},
			[]group{{"127.0.0.3", ""}, {"127.0.0.2", ""}, {"127.0.0.2", ""}, {"127.0.0.2", ""}, {"127.0.0.2", ""}, {"127.0.0.2", ""}},
			map[group]int{{"127.0.0.3", ""}: 1, {"127.0.0.2", ""}: 2}},
		{"many addresses", front.Options{MaxAnswerMemory: room, MaxAnswerMemoryPerIP: room},
			[]group{{"127.0.0.2", ""}, {"127.0.0.3", ""}, {"127.0.0.4", ""}, {"127.0.0.5", ""}, {"127.0.0.6", ""}}, map[group]int{{}: 2}},
		{"clients of a trusted proxy", front.Options{MaxAnswerMemoryPerIP: room, TrustedProxies: loopback},
			[]group{{"127.0.0.2", "192.0.2.1"}, {"127.0.0.2", "192.0.2.2"}, {"127.0.0.2", "192.0.2.2"}, {"127.0.0.2", "192.0.2.2"}, {"127.0.0.2", "192.0.2.2"}},
			map[group]int{{"127.0.0.2", "192.0.2.1"}: 1, {"127.0.0.2", "192.0.2.2"}: 2}},
		{"a trusted proxy that names none", front.Options{MaxAnswerMemoryPerIP: room, TrustedProxies: loopback},
			[]group{{"127.0.0.2", "192.0.2.1"}, {"127.0.0.2", ""}, {"127.0.0.2", ""}, {"127.0.0.2", ""}, {"127.0.0.2", ""}, {"127.0.0.2", "192.0.2.1"}, {"127.0.0.2", "192.0.2.1"}},
			map[group]int{{"127.0.0.2", "192.0.2.1"}: 2, {"127.0.0.2", ""}: 4}},
		{"one IPv6 network", front.Options{MaxAnswerMemoryPerIP: room, TrustedProxies: loopback},
			[]group{{"127.0.0.2", "2001:db8::1"}, {"127.0.0.2", "2001:db8::2"}, {"127.0.0.2", "2001:db8::3"}, {"127.0.0.2", "2001:db8::4"}}, map[group]int{{}: 2}},
		{"who is not trusted says nothing", front.Options{MaxAnswerMemoryPerIP: room},
			[]group{{"127.0.0.2", "192.0.2.1"}, {"127.0.0.2", "192.0.2.2"}, {"127.0.0.2", "192.0.2.3"}, {"127.0.0.2", "192.0.2.4"}}, map[group]int{{}: 2}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dial := slowly(t, row.opt)
			conns := make([]net.Conn, len(row.callers))
			for i, caller := range row.callers {
				conns[i] = dial(caller.from)
				head := fmt.Sprintf("GET /%d?%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", answer, i)
				if caller.forwarded != "" {
					head += "X-Forwarded-For: " + caller.forwarded + "\r\n"
				}
				write(t, conns[i], head+"\r\n")
				untilReadable(t, conns[i]) // of answers that are made at once, some are refused
			}
			want := 0
			for _, n := range row.left {
				want += n
			}
			got := map[group]int{}
			for _, nc := range untilLeft(t, conns, want) {
				i := slices.Index(conns, nc)
				who := row.callers[i]
				if _, all := row.left[group{}]; all {
					who = group{}
				}
				if whole(t, nc, i) {
					got[who]++
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(row.left) {
				t.Errorf("left are %v, want %v", got, row.left)
			}
		})
	}
}

// Whatever is cut off when, no answer has a byte of another, and all memory is given back.
func TestASlowReaderGetsItsOwnAnswer(t *testing.T) {
	const room = 3 << 20
	dial := slowly(t, front.Options{MaxAnswerMemory: room, MaxAnswerMemoryPerIP: room})
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[bool]int{}
	for caller := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			for i := range 8 {
				nc := dial("127.0.0.2")
				seed := caller*1000 + i
				write(t, nc, fmt.Sprintf("GET /%d?%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 1+random.IntN(2<<20), seed))
				if random.IntN(4) == 0 {
					_ = nc.Close()
					continue
				}
				ok := whole(t, io.MultiReader(io.LimitReader(nc, random.Int64N(2<<20)), pausing{nc}), seed)
				mu.Lock()
				seen[ok]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	t.Logf("%d answers came whole, %d did not", seen[true], seen[false])
	if seen[true] == 0 {
		t.Error("no answer came whole")
	}
	for end := time.Now().Add(time.Minute); ; { // it gets all of the memory when no other answer has any
		nc := dial("127.0.0.2")
		write(t, nc, fmt.Sprintf("GET /%d?1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", room))
		if whole(t, nc, 1) {
			return
		}
		if time.Now().After(end) {
			t.Fatal("memory of answers is not given back")
		}
	}
}

// pausing lets others go first.
type pausing struct{ io.Reader }

func (p pausing) Read(b []byte) (int, error) {
	runtime.Gosched()
	return p.Reader.Read(b[:min(len(b), 16<<10)])
}

func TestALargeAnswerWithALongHeadIsComplete(t *testing.T) {
	for _, size := range []int{16 << 10, 16<<10 + 1, 100_000, 3 << 20} {
		for _, method := range []string{"GET", "HEAD"} {
			long := strings.Repeat("v", 9000)
			s := serve(t, front.Options{}, func(x *front.Exchange) {
				r := text(200, strings.Repeat("a", size))
				r.Headers = append(r.Headers, pairs("x-long", long)...)
				x.Send(r)
			})
			nc := s.dial(t)
			for range 2 {
				write(t, nc, method+" / HTTP/1.1\r\nHost: x\r\n\r\n")
				a := readAnswer(t, bufio.NewReader(nc), method)
				if a.Header.Get("X-Long") != long || a.Header.Get("Content-Length") != strconv.Itoa(size) || method == "GET" && a.body != strings.Repeat("a", size) {
					t.Errorf("%s %d: %d bytes, Content-Length %s", method, size, len(a.body), a.Header.Get("Content-Length"))
				}
			}
		}
	}
}
