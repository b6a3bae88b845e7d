// Calls the server with the client that oapi-codegen has generated.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/oapi-codegen/runtime/types"

	"client.example/api"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	direct := &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c, err := api.NewClientWithResponses(os.Getenv("URL"), api.WithHTTPClient(direct), api.WithRequestEditorFn(func(_ context.Context, req *http.Request) error {
		req.Header.Set("X-API-Key", os.Getenv("TOKEN"))
		return nil
	}))
	check(err)

	item := api.ItemInput{Name: "pen", Meta: []any{1, "a"}, Site: new("https://example.com/pen"), Scan: new([]byte("sea")), Tags: &[]string{"a"}}
	check(item.Price.FromItemInputPrice0("1.50"))
	item.Due = &types.Date{Time: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)}
	pen, err := c.AddItemWithResponse(ctx, nil, item)
	check(err)
	id := *pen.JSON201.Id
	second := api.ItemInput{Name: "ink", Meta: map[string]int{"a": 1}, State: new(api.Paid)}
	check(second.Price.FromItemInputPrice1(12.5))
	ink, err := c.AddItemWithResponse(ctx, nil, second)
	check(err)
	say("added", pen.StatusCode(), ink.StatusCode())

	all, err := c.CallItemsWithResponse(ctx, api.CallItemsJSONRequestBody{})
	check(err)
	var rows []any
	for _, i := range *all.JSON200 {
		rows = append(rows, []any{i.Name, i.Price, i.State, i.Meta, i.Scan, i.Due})
	}
	say("items", rows)

	listed, err := c.ListItemsWithResponse(ctx, &api.ListItemsParams{States: &[]api.State{api.Open, api.Paid}, Most: new("2.00"), Limit: new(5)})
	check(err)
	var names []any
	for _, i := range *listed.JSON200 {
		names = append(names, i.Name)
	}
	say("listed", names)

	var terms api.CallAddJSONRequestBody
	check(json.Unmarshal([]byte(`{"a": "1.25", "b": 2}`), &terms))
	sum, err := c.CallAddWithResponse(ctx, terms)
	check(err)
	say("sum", sum.StatusCode(), sum.JSON200)
	echo, err := c.CallEchoWithResponse(ctx, api.CallEchoJSONRequestBody{Value: map[string]any{"deep": []any{nil}}})
	check(err)
	say("echo", echo.JSON200)
	removed, err := c.RemoveItemWithResponse(ctx, id, nil, map[string]any{})
	check(err)
	say("removed", removed.StatusCode())
	newest, err := c.NewestWithResponse(ctx, nil)
	check(err)
	say("redirected", newest.StatusCode())

	item.Site = new("nowhere")
	check(item.Price.FromItemInputPrice1(0.25))
	refused, err := c.AddItemWithResponse(ctx, nil, item)
	check(err)
	var fields []string
	for _, e := range *refused.ApplicationproblemJSON400.Errors {
		fields = append(fields, e.Field)
	}
	say("refused", refused.ApplicationproblemJSON400.Code, fields)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// say prints values as JSON.
func say(values ...any) {
	for i, v := range values {
		text, err := json.Marshal(v)
		check(err)
		if i > 0 {
			fmt.Print(" ")
		}
		fmt.Print(string(text))
	}
	fmt.Println()
}
