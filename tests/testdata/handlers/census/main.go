// Handlers that treat every failed read as an absent row, as a careless app does.
package main

import runner "runner.example/sdk/go"

func main() {}

//go:wasmexport all
func exportAll() { runner.Handle(all) }

//go:wasmexport count
func exportCount() { runner.Handle(count) }

//go:wasmexport find
func exportFind() { runner.Handle(find) }

//go:wasmexport add
func exportAdd() { runner.Handle(add) }

// Item is a row of the entity Item.
type Item struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// all returns the number of rows that a query finds, page by page, in the order of ?by=.
func all(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	rows := []Item{}
	_ = runner.Query("Item").OrderBy(req.Query("by"), req.Query("direction")).Limit(1000).All(ctx, &rows)
	return runner.OK(len(rows)), nil
}

// count returns the number of rows.
func count(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	n, _ := runner.Query("Item").Count(ctx)
	return runner.OK(n), nil
}

// find reports whether a row has the name.
func find(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var row Item
	if err := runner.Query("Item").Where("name", "=", req.Param("name")).FirstOrFail(ctx, &row); err != nil {
		return runner.OK("absent"), nil
	}
	return runner.OK("there"), nil
}

// add inserts a row with the name unless it exists.
func add(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	if err := runner.Insert("Item", Item{Name: req.Param("name")}).Row(ctx, nil); err != nil {
		return runner.OK("refused"), nil
	}
	return runner.OK("added"), nil
}
