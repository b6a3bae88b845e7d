// Handlers whose packages draw before the first request.
package main

import (
	"hash/maphash"
	"log"
	oldrand "math/rand"
	"math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"go.mongodb.org/mongo-driver/v2/bson"

	runner "runner.example/sdk/go"
)

// What these draw is the same in every request.
var (
	number   = rand.Int()
	made     = rand.New(rand.NewPCG(rand.Uint64(), 0))
	timed    = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	oldTimed = oldrand.New(oldrand.NewSource(time.Now().UnixNano()))
	seed     = maphash.MakeSeed()
	first    = ulid.Make()
)

// These draw nothing: the clock is no seed, the sequence is meant to be the same, and maps belong to the
// runtime.
var (
	started = time.Now()
	logger  = log.New(log.Writer(), started.Format(time.Kitchen)+" ", 0)
	fixed   = rand.New(rand.NewPCG(1, 2))
	names   = map[string]int{"a": 1, "b": 2}
)

func init() {
	for name := range names {
		names[name]++
	}
}

func main() {}

//go:wasmexport ids
func exportIDs() { runner.Handle(ids) }

// ids returns one id of each package.
func ids(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(map[string]string{"xid": xid.New().String(), "bson": bson.NewObjectID().Hex(), "ulid": ulid.Make().String()}), nil
}

//go:wasmexport others
func exportOthers() { runner.Handle(others) }

// others returns what the package variables hold.
func others(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	logger.Print(fixed.Int())
	return runner.OK([]any{number, made.Int(), timed.Int(), oldTimed.Int(), maphash.String(seed, "a"), first, names}), nil
}
