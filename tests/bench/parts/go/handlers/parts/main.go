// Command parts has handlers that each do one kind of work. The same are in ../../../ts.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"runner.example/sdk/go"
)

func main() {}

//go:wasmexport runner_warm
func exportWarm() {
	for _, handler := range []func(*runner.Context, *runner.Request) (runner.Response, error){nothing, answer, read, match, text, sort, markdown, digest} {
		runner.Warm(handler)
	}
	rows := `[{"id":"o-1","item":"tea","qty":1,"price":1.5}]`
	runner.Warm(parse, rows)
	runner.Warm(hundred, rows)
}

type row struct {
	ID    string  `json:"id"`
	Item  string  `json:"item"`
	Qty   int     `json:"qty"`
	Price float64 `json:"price"`
	Total float64 `json:"total"`
}

var some = func() (rows []row) {
	for i := range 100 {
		rows = append(rows, row{fmt.Sprintf("o-%d", i), "a lamp of brass", i, 12.5, 12.5 * float64(i)})
	}
	return rows
}()

//go:wasmexport nothing
func exportNothing() { runner.Handle(nothing) }

func nothing(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.NoContent(), nil
}

//go:wasmexport parse
func exportParse() { runner.Handle(parse) }

func parse(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	_, err := runner.Body[[]row](req)
	return runner.NoContent(), err
}

//go:wasmexport hundred
func exportHundred() { runner.Handle(hundred) }

func hundred(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	rows, err := runner.Body[[]row](req)
	for i := range rows {
		rows[i].Total = float64(rows[i].Qty) * rows[i].Price
	}
	return runner.OK(rows), err
}

//go:wasmexport answer
func exportAnswer() { runner.Handle(answer) }

func answer(*runner.Context, *runner.Request) (runner.Response, error) { return runner.OK(some), nil }

//go:wasmexport read
func exportRead() { runner.Handle(read) }

func read(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK([]string{req.Param("what"), req.Query("page"), req.Header("host"), req.Header("accept")}), nil
}

var words = regexp.MustCompile(`\b[a-z]+(ing|ed)\b`)

//go:wasmexport match
func exportMatch() { runner.Handle(match) }

func match(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.OK(len(words.FindAllStringIndex(document, -1))), nil
}

//go:wasmexport text
func exportText() { runner.Handle(text) }

func text(*runner.Context, *runner.Request) (runner.Response, error) {
	var out strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&out, "%d: %s\n", i, sentence)
	}
	return runner.OK(out.Len()), nil
}

//go:wasmexport sort
func exportSort() { runner.Handle(sort) }

func sort(*runner.Context, *runner.Request) (runner.Response, error) {
	var list []int
	for i, n := 0, 1; i < 1000; i, n = i+1, n*48271%2147483647 {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b int) int { return a - b })
	return runner.OK(list[500]), nil
}

var converter = goldmark.New(goldmark.WithExtensions(extension.Table))

//go:wasmexport markdown
func exportMarkdown() { runner.Handle(markdown) }

func markdown(*runner.Context, *runner.Request) (runner.Response, error) {
	var out bytes.Buffer
	err := converter.Convert([]byte(document), &out)
	return runner.OK(out.Len()), err
}

//go:wasmexport digest
func exportDigest() { runner.Handle(digest) }

func digest(*runner.Context, *runner.Request) (runner.Response, error) {
	sum := sha256.Sum256(make([]byte, 4096))
	return runner.OK(hex.EncodeToString(sum[:])), nil
}
