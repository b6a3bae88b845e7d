// Handlers of transactions over several counters, which write down what they read and wrote.
package main

import (
	"encoding/json"

	runner "runner.example/sdk/go"
)

func main() {}

//go:wasmexport transact
func exportTransact() { runner.Handle(transact) }

//go:wasmexport look
func exportLook() { runner.Handle(look) }

// Counter is a row of the entity Counter.
type Counter struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// Order names counters to read, and counters to add one to.
type Order struct {
	Name  string   `json:"name"`
	Read  []string `json:"read"`
	Write []string `json:"write"`
}

// Versions are values of counters by name.
type Versions map[string]int

// find returns the counter with the name.
func find(ctx *runner.Context, name string) (c Counter, err error) {
	return c, runner.Query("Counter").Where("name", "=", name).FirstOrFail(ctx, &c)
}

// transact runs an order, and inserts a row with what it has read and written.
func transact(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	order, err := runner.Body[Order](req)
	if err != nil {
		return runner.Response{}, err
	}
	read, written := Versions{}, Versions{}
	for _, name := range order.Read {
		c, err := find(ctx, name)
		if err != nil {
			return runner.Response{}, err
		}
		read[name] = c.N
	}
	for _, name := range order.Write {
		c, err := find(ctx, name)
		if err != nil {
			return runner.Response{}, err
		}
		written[name] = c.N + 1
		if _, err := runner.Update("Counter", map[string]int{"n": c.N + 1}).Where("id", "=", c.ID).Run(ctx); err != nil {
			return runner.Response{}, err
		}
	}
	readText, err := json.Marshal(read)
	if err != nil {
		return runner.Response{}, err
	}
	writtenText, err := json.Marshal(written)
	if err != nil {
		return runner.Response{}, err
	}
	row := map[string]string{"name": order.Name, "read": string(readText), "written": string(writtenText)}
	return runner.Created(row), runner.Insert("Operation", row).Row(ctx, nil)
}

// look returns the value of a counter.
func look(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	c, err := find(ctx, req.Param("name"))
	return runner.OK(c.N), err
}
