// Command guest is the Go SDK's guest of the conformance suite. tests/conformance/README.md describes its handlers.
package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"runner.example/sdk/go"
)

func main() {}

//go:wasmexport echo
func exportEcho() { runner.Handle(echo) }

//go:wasmexport body
func exportBody() { runner.Handle(body) }

//go:wasmexport raw
func exportRaw() { runner.Handle(raw) }

//go:wasmexport answers
func exportAnswers() { runner.Handle(answers) }

//go:wasmexport context
func exportContext() { runner.Handle(context) }

//go:wasmexport logs
func exportLogs() { runner.Handle(logs) }

//go:wasmexport counter
func exportCounter() { runner.Handle(counter) }

//go:wasmexport fail
func exportFail() { runner.Handle(fail) }

//go:wasmexport panic
func exportPanic() { runner.Handle(panics) }

//go:wasmexport silent
func exportSilent() {}

// order is what the schema says.
type order struct {
	ID     string  `json:"id"`
	Item   string  `json:"item"`
	Qty    int     `json:"qty"`
	Status string  `json:"status"`
	Code   *string `json:"code"`
}

func echo(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	all := req.QueryAll("q")
	if all == nil {
		all = []string{}
	}
	return runner.OK(map[string]any{
		"method": req.Method(), "path": req.Path(), "raw": req.RawQuery(), "name": req.Param("name"),
		"q": given(req.Query("q"), req.HasQuery("q")), "all": all,
		"one":     given(req.Header("x-one"), req.Header("x-one") != ""),
		"missing": given(req.Header("x-missing"), req.Header("x-missing") != ""),
		"bytes":   len(req.RawBody()),
	}), nil
}

// given is null when there is none.
func given(value string, is bool) *string {
	if !is {
		return nil
	}
	return &value
}

func body(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	in, err := runner.Body[struct {
		Item  string   `json:"item"`
		Qty   *int     `json:"qty"`
		Ratio *float64 `json:"ratio"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	if in.Item == "" {
		return runner.BadRequest("missing field: item"), nil
	}
	qty := 1
	if in.Qty != nil {
		qty = *in.Qty
	}
	return runner.Created(map[string]any{"item": in.Item, "qty": qty, "ratio": in.Ratio}, "/things/1"), nil
}

func raw(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(req.RawBody()).WithHeader("content-type", "application/octet-stream"), nil
}

func answers(_ *runner.Context, req *runner.Request) (runner.Response, error) {
	what := req.Param("what")
	small := map[string]int{"a": 1}
	switch what {
	case "ok":
		return runner.OK(small), nil
	case "null":
		return runner.OK(nil), nil
	case "text":
		return runner.OK("é\n\"<"), nil
	case "created":
		return runner.Created(small), nil
	case "nowhere":
		return runner.Created(small, ""), nil
	case "location":
		return runner.Created(small, "/a/1"), nil
	case "noContent":
		return runner.NoContent(), nil
	case "redirect":
		return runner.Redirect("/elsewhere"), nil
	case "moved":
		return runner.Redirect("https://example.com/x", 308), nil
	case "badRequest":
		return runner.BadRequest("no: " + what), nil
	case "unauthorized":
		return runner.Unauthorized("no: " + what), nil
	case "problem":
		return runner.Error(402, "no: "+what).WithCode("no_credit").WithMember("balance", 3), nil
	case "reserved":
		return runner.Error(402, "no: "+what).WithCode("no_credit").WithMember("title", "x"), nil
	case "forbidden":
		return runner.Forbidden("no: " + what), nil
	case "notFound":
		return runner.NotFound("no: " + what), nil
	case "error":
		return runner.Error(422, "no: error"), nil
	case "empty":
		return runner.NotFound(""), nil
	case "headers":
		return runner.OK(1).WithHeader("x-a", "1").WithHeader("x-a", "2"), nil
	case "denied":
		return runner.OK(1).WithHeader("date", "x"), nil
	}
	return runner.NotFound("unknown"), nil
}

func context(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	auth := ctx.Auth()
	roles := auth.Roles
	if roles == nil {
		roles = []string{}
	}
	var metadata, claims any
	if auth.Metadata != nil {
		metadata = auth.Metadata
	}
	if auth.Claims != nil {
		claims = auth.Claims
	}
	orNull := func(s string) *string { return given(s, s != "") }
	return runner.OK(map[string]any{
		"requestId": ctx.RequestID(), "route": ctx.Route(), "kind": auth.Kind,
		"userId": orNull(auth.UserID), "tenant": orNull(auth.Tenant), "roles": roles,
		"keyId": orNull(auth.KeyID), "scope": orNull(auth.Scope), "capability": orNull(auth.Capability),
		"metadata": metadata, "claims": claims, "deadline": ctx.Deadline().Year() > 2020,
	}), nil
}

func logs(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	log := ctx.Log()
	log.Debug("one")
	log.Info("two ü")
	log.Warn("three")
	log.Error("four")
	return runner.NoContent(), nil
}

var count int

func counter(*runner.Context, *runner.Request) (runner.Response, error) {
	count++
	return runner.OK(map[string]int{"n": count}), nil
}

func fail(*runner.Context, *runner.Request) (runner.Response, error) {
	return runner.Response{}, errors.New("boom")
}

func panics(*runner.Context, *runner.Request) (runner.Response, error) {
	panic("boom")
}

//go:wasmexport seed
func exportSeed() { runner.Handle(seed) }

func seed(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	var rows []order
	err := runner.Insert("Order", []map[string]any{
		{"item": "a", "qty": 1, "code": "first"}, {"item": "b", "qty": 2}, {"item": "c", "qty": 3}, {"item": "d", "qty": 4},
	}).Rows(ctx, &rows)
	return runner.OK(items(rows)), err
}

func items(rows []order) []string {
	all := []string{}
	for _, row := range rows {
		all = append(all, row.Item)
	}
	return all
}

//go:wasmexport createOrder
func exportCreateOrder() { runner.Handle(createOrder) }

func createOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	in, err := runner.Body[struct {
		Item string `json:"item"`
		Qty  *int   `json:"qty,omitempty"`
	}](req)
	if err != nil {
		return runner.Response{}, err
	}
	var row order
	if err := runner.Insert("Order", in).Row(ctx, &row); err != nil {
		return runner.Response{}, err
	}
	return runner.Created(row, "/orders/"+row.ID), nil
}

//go:wasmexport listOrders
func exportListOrders() { runner.Handle(listOrders) }

func listOrders(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	query := runner.Query("Order").Select("id", "item", "qty").Where("status", "=", "open").OrderBy("qty", "desc").Limit(2)
	if over := req.Query("over"); over != "" {
		n, err := strconv.Atoi(over)
		if err != nil {
			return runner.Response{}, err
		}
		query = query.Where("qty", ">", n)
	}
	return runner.OK(runner.Rows), query.All(ctx, nil)
}

//go:wasmexport getOrder
func exportGetOrder() { runner.Handle(getOrder) }

func getOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	return runner.OK(runner.Row), runner.Get("Order", req.Param("id"), "id", "item").Row(ctx, nil)
}

//go:wasmexport nameOrder
func exportNameOrder() { runner.Handle(nameOrder) }

func nameOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var row order
	err := runner.Get("Order", req.Param("id")).Row(ctx, &row)
	return runner.OK(map[string]string{"item": row.Item}), err
}

//go:wasmexport updateOrder
func exportUpdateOrder() { runner.Handle(updateOrder) }

func updateOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var rows []order
	n, err := runner.Update("Order", map[string]string{"status": "paid"}).Where("id", "=", req.Param("id")).Rows(ctx, &rows)
	return runner.OK(map[string]any{"count": n, "items": items(rows)}), err
}

//go:wasmexport deleteOrder
func exportDeleteOrder() { runner.Handle(deleteOrder) }

func deleteOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	n, err := runner.Remove("Order").Where("id", "=", req.Param("id")).Run(ctx)
	if err == nil && n == 0 {
		return runner.NotFound("no such order"), nil
	}
	return runner.NoContent(), err
}

//go:wasmexport firstOrder
func exportFirstOrder() { runner.Handle(firstOrder) }

func firstOrder(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var row order
	err := runner.Query("Order").Where("item", "=", req.Param("item")).FirstOrFail(ctx, &row)
	return runner.OK(row), err
}

//go:wasmexport pages
func exportPages() { runner.Handle(pages) }

func pages(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	all := [][]string{}
	for cursor := ""; ; {
		var rows []order
		next, err := runner.Query("Order").Select("item").OrderBy("item").Limit(3).Page(ctx, &rows, cursor)
		if err != nil {
			return runner.Response{}, err
		}
		all = append(all, items(rows))
		if cursor = next; cursor == "" {
			return runner.OK(all), nil
		}
	}
}

//go:wasmexport conditions
func exportConditions() { runner.Handle(conditions) }

func conditions(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	var rows []order
	err := runner.Select("item").From("Order").Where("item", "in", []string{"a", "b", "c"}).Match(
		runner.Or(
			runner.Field("item", "=", "a"),
			runner.And(runner.Field("qty", ">=", 2), runner.Not(runner.Field("qty", "=", 3))),
		)).All(ctx, &rows)
	return runner.OK(items(rows)), err
}

//go:wasmexport missing
func exportMissing() { runner.Handle(missing) }

func missing(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var token *string
	if req.HasQuery("token") {
		token = new(string)
	}
	nine := runner.Update("Order", map[string]int{"qty": 9})
	var err error
	switch req.Param("what") {
	case "where":
		_, err = nine.Where("code", "=", token).Run(ctx)
	case "or":
		_, err = runner.Remove("Order").Match(runner.Or(runner.Field("item", "=", "a"), runner.Not(runner.Field("code", "!=", token)))).Run(ctx)
	case "nan":
		_, err = runner.Query("Order").Where("qty", ">=", math.NaN()).Count(ctx)
	case "insert":
		err = runner.Insert("Order", map[string]any{"item": "x", "qty": math.NaN()}).Row(ctx, nil)
	case "enqueue":
		_, err = ctx.Client.Jobs.Enqueue("mail", map[string]any{"to": []float64{1, math.NaN()}}, runner.JobOptions{})
	case "limit":
		err = runner.Query("Order").Limit(0).All(ctx, &[]order{})
	}
	if err != nil {
		return runner.Response{}, err
	}
	n, err := nine.Where("code", "=", runner.Null).Run(ctx)
	return runner.OK(map[string]int{"count": n}), err
}

//go:wasmexport countOrders
func exportCountOrders() { runner.Handle(countOrders) }

func countOrders(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	query := runner.Query("Order")
	if req.HasQuery("q") {
		query = query.Where("item", "startsWith", req.Query("q"))
	}
	n, err := query.Count(ctx)
	return runner.OK(map[string]int{"count": n}), err
}

//go:wasmexport related
func exportRelated() { runner.Handle(related) }

func related(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	var made struct{ ID string }
	if err := runner.Insert("Order", map[string]any{"item": "r", "qty": 5}).Row(ctx, &made); err != nil {
		return runner.Response{}, err
	}
	lines := []map[string]string{{"order": made.ID, "text": "x"}, {"order": made.ID, "text": "Y"}}
	if err := runner.Insert("Line", lines).Rows(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	var read []struct {
		Text  string `json:"text"`
		Order struct {
			Item string `json:"item"`
		} `json:"order"`
	}
	err := runner.Query("Line").Select("text").OrderBy("text").Include("order", runner.Select("item")).All(ctx, &read)
	if err != nil {
		return runner.Response{}, err
	}
	var found struct {
		Item  string `json:"item"`
		Lines []struct {
			Text  string `json:"text"`
			Order struct {
				Qty int `json:"qty"`
			} `json:"order"`
		} `json:"lines"`
	}
	one := runner.Select("text").Match(runner.Field("text", "contains", "y").IgnoreCase()).
		OrderBy("text", "desc").Limit(1).Include("order", runner.Select("qty"))
	err = runner.Get("Order", made.ID, "item").Include("lines", one).Row(ctx, &found)
	return runner.OK(map[string]any{"lines": read, "order": found}), err
}

//go:wasmexport limited
func exportLimited() { runner.Handle(limited) }

func limited(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	counts := func(c runner.Counts) map[string]any { return map[string]any{"count": c.Count, "more": c.More} }
	changed, err := runner.Update("Order", map[string]int{"qty": 9}).Where("qty", ">=", 1).Limit(2).Run(ctx)
	if err != nil {
		return runner.Response{}, err
	}
	removed, err := runner.Remove("Order").Where("qty", "=", 9).Limit(5).Run(ctx)
	if err != nil {
		return runner.Response{}, err
	}
	counted, err := runner.Query("Order").CountAtMost(ctx, 1)
	if err != nil {
		return runner.Response{}, err
	}
	var first *order
	var row order
	found, err := runner.Query("Order").Where("item", "=", "none").First(ctx, &row)
	if err != nil {
		return runner.Response{}, err
	}
	if found {
		first = &row
	}
	var visits []map[string]string
	for _, at := range []string{"2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"} {
		visits = append(visits, map[string]string{"at": at})
	}
	if err := runner.Insert("Visit", visits).Rows(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	var days, months []map[string]any
	if err := runner.Aggregate("Visit").GroupByTime("at", "day", "Europe/Berlin").Count().All(ctx, &days); err != nil {
		return runner.Response{}, err
	}
	err = runner.Aggregate("Visit").GroupByTime("at", "month").Count().All(ctx, &months)
	return runner.OK(map[string]any{
		"changed": counts(changed), "removed": counts(removed), "counted": counts(counted), "first": first, "days": days, "months": months,
	}), err
}

//go:wasmexport totals
func exportTotals() { runner.Handle(totals) }

func totals(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	type values struct {
		Qty  *float64 `json:"qty,omitempty"`
		Item *string  `json:"item,omitempty"`
	}
	var groups []struct {
		Group struct {
			Status string `json:"status"`
		} `json:"group"`
		Count int    `json:"count"`
		Sum   values `json:"sum"`
		Avg   values `json:"avg"`
		Min   values `json:"min"`
		Max   values `json:"max"`
	}
	err := runner.Aggregate("Order").Where("qty", ">=", 1).GroupBy("status").
		Sum("qty").Avg("qty").Min("item").Max("item", "qty").Count().All(ctx, &groups)
	return runner.OK(map[string]any{"groups": groups}), err
}

//go:wasmexport everything
func exportEverything() { runner.Handle(everything) }

func everything(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	set := map[string]int{"qty": 9}
	_, first := runner.Update("Order", set).Run(ctx)
	_, second := runner.Remove("Order").Run(ctx)
	updated, err := runner.Update("Order", set).Every().Run(ctx)
	if err != nil {
		return runner.Response{}, err
	}
	removed, err := runner.Remove("Order").Every().Run(ctx)
	return runner.OK(map[string]any{"codes": codes(first, second), "updated": updated, "removed": removed}), err
}

// codes are those of failed operations.
func codes(errs ...error) []string {
	all := []string{}
	for _, err := range errs {
		var told *runner.HostError
		if errors.As(err, &told) {
			all = append(all, told.Code)
		}
	}
	return all
}

//go:wasmexport uncaught
func exportUncaught() { runner.Handle(uncaught) }

func uncaught(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	var row order
	var err error
	switch req.Param("what") {
	case "not_found":
		err = runner.Get("Order", "none").Row(ctx, &row)
	case "denied":
		err = runner.Insert("Order", map[string]string{"item": "x"}).Row(ctx, &row)
	case "conflict":
		err = runner.Insert("Order", map[string]string{"item": "x", "code": "first"}).Row(ctx, &row)
	case "invalid":
		err = runner.Query("Nothing").All(ctx, &[]order{})
	case "secret":
		_, err = ctx.Secret("NOPE")
	case "fetch":
		_, err = ctx.Fetch(runner.FetchRequest{URL: "https://elsewhere.example/"})
	}
	return runner.NoContent(), err
}

//go:wasmexport caught
func exportCaught() { runner.Handle(caught) }

func caught(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	var row order
	first := runner.Get("Order", "none").Row(ctx, &row)
	second := runner.Insert("Order", map[string]string{"item": "x", "code": "first"}).Row(ctx, &row)
	_, third := ctx.Secret("NOPE")
	_, fourth := ctx.Client.Webhooks.Verify("github", "HOOK")
	var taken *runner.HostError
	if !errors.As(runner.Insert("Order", map[string]string{"item": "x", "code": "first"}).Row(ctx, &row), &taken) {
		return runner.Response{}, errors.New("no error of the host")
	}
	return runner.OK(append(codes(first, second, third, fourth), taken.Op+" "+taken.Entity+" "+taken.Field)), nil
}

//go:wasmexport kept
func exportKept() { runner.Handle(kept) }

func kept(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	ctx.KeepWrites()
	var row order
	err := runner.Insert("Order", map[string]string{"item": "kept"}).Row(ctx, &row)
	return runner.Error(422, "changed my mind"), err
}

//go:wasmexport keys
func exportKeys() { runner.Handle(keys) }

func keys(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	api := ctx.Client.APIKeys
	key, err := api.Create(runner.APIKeyOptions{Scope: "readers", Name: "k", ExpiresIn: time.Hour, Metadata: map[string]int{"a": 1}})
	if err != nil {
		return runner.Response{}, err
	}
	got, err := api.Get(key.ID)
	if err != nil {
		return runner.Response{}, err
	}
	list, err := api.List(runner.APIKeyFilter{Scope: "readers", Limit: 10})
	if err != nil {
		return runner.Response{}, err
	}
	rotated, err := api.Rotate(key.ID, time.Minute)
	if err != nil {
		return runner.Response{}, err
	}
	revoked, err := api.Revoke(key.ID)
	return runner.OK(map[string]any{
		"name": got.Name, "token": strings.HasPrefix(key.Token, "cnf_"), "metadata": json.RawMessage(got.Metadata),
		"listed": len(list.Keys), "rotating": rotated.Status, "revoked": revoked.Status,
	}), err
}

//go:wasmexport allKeys
func exportAllKeys() { runner.Handle(allKeys) }

func allKeys(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	if _, err := ctx.Client.APIKeys.Create(runner.APIKeyOptions{Scope: "readers", Name: "newest"}); err != nil {
		return runner.Response{}, err
	}
	list, err := ctx.Client.APIKeys.List(runner.APIKeyFilter{})
	if err != nil {
		return runner.Response{}, err
	}
	last := list.Keys[len(list.Keys)-1]
	return runner.OK(map[string]any{
		"keys": len(list.Keys), "owner": last.Owner, "kind": last.OwnerKind, "name": last.Name, "end": list.NextCursor == "",
	}), nil
}

//go:wasmexport variables
func exportVariables() { runner.Handle(variables) }

func variables(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	_, nope := runner.Var[string](ctx, "NOPE")
	origin, err1 := runner.Var[string](ctx, "ORIGIN")
	note, err2 := runner.Var[string](ctx, "NOTE")
	count, err3 := runner.Var[int](ctx, "COUNT")
	price, err4 := runner.Var[string](ctx, "PRICE")
	on, err5 := runner.Var[bool](ctx, "ON")
	idle, err6 := runner.Var[time.Duration](ctx, "IDLE")
	burst, err7 := runner.Var[string](ctx, "BURST")
	return runner.OK(map[string]any{
		"origin": origin, "note": note, "count": count + 1, "price": price, "on": !on, "idle": int(idle.Seconds()), "burst": burst,
		"again": note, "other": codes(nope)[0],
	}), errors.Join(err1, err2, err3, err4, err5, err6, err7)
}

//go:wasmexport secret
func exportSecret() { runner.Handle(secret) }

func secret(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	value, err := ctx.Secret("HOOK")
	return runner.OK(map[string]string{"value": value}), err
}

//go:wasmexport sums
func exportSums() { runner.Handle(sums) }

func sums(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	secret, err := ctx.Secret("HOOK")
	if err != nil {
		return runner.Response{}, err
	}
	var digest struct {
		Hex string `json:"hex"`
	}
	err1 := ctx.Call("digest", map[string]any{"algorithm": "SHA-256", "data": map[string][]byte{"base64": append([]byte{}, req.RawBody()...)}}, &digest)
	signed, err2 := ctx.HMACWithSecret(runner.SHA256, "HOOK", req.RawBody())
	equal, err3 := ctx.TimingSafeEqual(signed, signed)
	sum, err4 := ctx.Digest(runner.SHA256, req.RawBody())
	other, err5 := ctx.TimingSafeEqual(signed, sum)
	return runner.OK(map[string]any{
		"digest": digest.Hex, "hmac": hex.EncodeToString(signed), "equal": equal, "other": other || hex.EncodeToString(sum) != digest.Hex, "length": len(secret),
	}), errors.Join(err1, err2, err3, err4, err5)
}

//go:wasmexport passwords
func exportPasswords() { runner.Handle(passwords) }

func passwords(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	body := string(req.RawBody())
	hash, err := ctx.HashPassword(body)
	right, err1 := ctx.VerifyPassword(body, hash)
	wrong, err2 := ctx.VerifyPassword("other", hash)
	unknown, err3 := ctx.VerifyPassword(body, "")
	old, err4 := ctx.VerifyPassword("secret", "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW")
	_, malformed := ctx.VerifyPassword(body, "plain")
	return runner.OK(map[string]any{
		"hash": strings.HasPrefix(hash, "$argon2id$"), "right": right, "wrong": wrong, "unknown": unknown, "old": old, "malformed": codes(malformed)[0],
	}), errors.Join(err, err1, err2, err3, err4)
}

//go:wasmexport calls
func exportCalls() { runner.Handle(calls) }

func calls(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	service := req.Header("x-service")
	both := ctx.FetchAll(runner.FetchRequest{
		Method: "POST", URL: service + "/one", Body: req.RawBody(),
		Headers: []runner.Pair{{Name: "content-type", Value: "application/octet-stream"}, {Name: "x-a", Value: "1"}},
	}, runner.FetchRequest{URL: service + "/two"})
	if err := errors.Join(both[0].Err, both[1].Err); err != nil {
		return runner.Response{}, err
	}
	_, err := ctx.Fetch(runner.FetchRequest{URL: "https://elsewhere.example/"})
	told := func(r runner.FetchResult) map[string]any {
		return map[string]any{"status": r.Status, "bytes": len(r.Body), "told": r.Header("x-told")}
	}
	return runner.OK(map[string]any{"one": told(both[0]), "two": told(both[1]), "elsewhere": strings.Join(codes(err), "")}), nil
}

//go:wasmexport redirects
func exportRedirects() { runner.Handle(redirects) }

func redirects(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	moved := func(redirect string) (runner.FetchResponse, error) {
		return ctx.Fetch(runner.FetchRequest{URL: req.Header("x-service") + "/moved", Redirect: redirect})
	}
	manual, err := moved("manual")
	if err != nil {
		return runner.Response{}, err
	}
	follow, err := moved("follow")
	if err != nil {
		return runner.Response{}, err
	}
	_, err = moved("error")
	return runner.OK(map[string]any{"manual": manual.Status, "follow": follow.Status, "error": strings.Join(codes(err), "")}), nil
}

//go:wasmexport signIn
func exportSignIn() { runner.Handle(signIn) }

func signIn(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	options := runner.SessionOptions{UserID: "bob"}
	if req.Param("what") == "full" {
		options = runner.SessionOptions{UserID: "ada", Tenant: "acme", Roles: []string{"admin"}, TTL: 10 * time.Minute}
	}
	session, err := ctx.Client.Sessions.Create(options)
	return runner.OK(session), err
}

//go:wasmexport signOut
func exportSignOut() { runner.Handle(signOut) }

func signOut(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	id := runner.CurrentSession
	if req.HasQuery("id") {
		id = req.Query("id")
	}
	return runner.NoContent(), ctx.Client.Sessions.Revoke(id)
}

// ifAny is a query value, nil if it is absent.
func ifAny(req *runner.Request, name string) *string {
	if !req.HasQuery(name) {
		return nil
	}
	value := req.Query(name)
	return &value
}

//go:wasmexport listSessions
func exportListSessions() { runner.Handle(listSessions) }

func listSessions(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	limit, _ := strconv.Atoi(req.Query("limit"))
	filter := runner.SessionFilter{Tenant: ifAny(req, "tenant"), AllTenants: req.Query("all") != "", Limit: limit, Cursor: req.Query("cursor")}
	list := ctx.Client.Sessions.List
	if req.HasQuery("user") {
		list = ctx.Client.Sessions.Of(req.Query("user")).List
	}
	page, err := list(filter)
	var first any
	if len(page.Sessions) > 0 {
		s := page.Sessions[0]
		first = map[string]any{"userId": s.UserID, "tenant": s.Tenant, "roles": s.Roles, "current": s.Current,
			"timed": s.ExpiresAt.After(s.CreatedAt) && !s.LastSeenAt.Before(s.CreatedAt)}
	}
	return runner.OK(map[string]any{"count": len(page.Sessions), "first": first, "more": page.NextCursor != ""}), err
}

//go:wasmexport endSessions
func exportEndSessions() { runner.Handle(endSessions) }

func endSessions(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	options := runner.RevokeOptions{Tenant: ifAny(req, "tenant"), AllTenants: req.Query("all") != "", Except: req.Query("except")}
	revokeAll := ctx.Client.Sessions.RevokeAll
	if req.HasQuery("user") {
		revokeAll = ctx.Client.Sessions.Of(req.Query("user")).RevokeAll
	}
	n, err := revokeAll(options)
	return runner.OK(map[string]any{"count": n}), err
}

//go:wasmexport verify
func exportVerify() { runner.Handle(verify) }

func verify(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	delivery, err := ctx.Client.Webhooks.Verify(req.Param("scheme"), req.Query("secret"))
	return runner.OK(map[string]any{"id": delivery.ID, "timed": delivery.Time.Year() > 2020}), err
}

//go:wasmexport enqueue
func exportEnqueue() { runner.Handle(enqueue) }

func enqueue(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	jobs, ada := ctx.Client.Jobs, map[string]string{"to": "ada"}
	switch req.Param("what") {
	case "unknown":
		_, err := jobs.Enqueue("mial", map[string]string{}, runner.JobOptions{})
		return runner.NoContent(), err
	case "missing":
		_, err := jobs.Cancel("job_0")
		return runner.NoContent(), err
	}
	var all [4]runner.EnqueuedJob
	for i, options := range []runner.JobOptions{
		{}, {Delay: time.Minute, Key: "k"}, {At: time.Date(2026, 1, 31, 9, 30, 0, 0, time.UTC)}, {Key: "k"},
	} {
		var err error
		if all[i], err = jobs.Enqueue("mail", ada, options); err != nil {
			return runner.Response{}, err
		}
	}
	cancelled, err := jobs.Cancel(all[1].ID)
	if err != nil {
		return runner.Response{}, err
	}
	twice, err := jobs.Cancel(all[1].ID)
	return runner.OK(map[string]any{
		"created": all[0].Created, "again": all[3].Created, "same": all[3].ID == all[1].ID, "cancelled": cancelled, "twice": twice,
	}), err
}

//go:wasmexport job
func exportJob() { runner.Handle(job) }

func job(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	job := ctx.Job()
	if job == nil {
		return runner.NotFound("no job"), nil
	}
	return runner.OK(map[string]any{"attempt": job.Attempt, "scheduledFor": job.ScheduledFor}), nil
}

//go:wasmexport mail
func exportMail() { runner.Handle(mail) }

func mail(*runner.Context, *runner.Request) (runner.Response, error) { return runner.NoContent(), nil }

//go:wasmexport bodies
func exportBodies() { runner.Handle(bodies) }

func bodies(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	switch req.Param("what") {
	case "echo":
		return runner.Stream(func(w *runner.Writer) error {
			_, err := io.Copy(w, req.Reader())
			return err
		}), nil
	case "whole":
		return runner.OK(map[string]int{"bytes": len(req.RawBody())}), nil
	}
	if err := runner.Insert("Order", map[string]string{"item": "body"}).Row(ctx, nil); err != nil {
		return runner.Response{}, err
	}
	length, sum := 0, 0
	for part := make([]byte, 10_000); ; {
		n, err := req.Reader().Read(part)
		length += n
		for _, b := range part[:n] {
			sum += int(b)
		}
		if err == io.EOF {
			return runner.OK(map[string]int{"bytes": length, "sum": sum}), nil
		} else if err != nil {
			return runner.Response{}, err
		}
	}
}

//go:wasmexport streams
func exportStreams() { runner.Handle(streams) }

func streams(ctx *runner.Context, req *runner.Request) (runner.Response, error) {
	what := req.Param("what")
	if what == "parts" || what == "fails" {
		if err := runner.Insert("Order", map[string]string{"item": "before"}).Row(ctx, nil); err != nil {
			return runner.Response{}, err
		}
	}
	switch what {
	case "events":
		last := "none"
		if id := req.Header("last-event-id"); id != "" {
			last = id
		}
		return runner.Events(func(w *runner.Writer) error {
			return errors.Join(
				w.Event(runner.Event{Event: "tick", ID: "1", Data: "last " + last}),
				w.Event(runner.Event{Data: "a\r\nb\rc\n\nd"}),
				w.Event(runner.Event{ID: "2", Retry: 1500 * time.Millisecond}),
				w.Event(runner.Event{Event: "bye"}),
			)
		}), nil
	case "refused":
		return runner.Events(func(w *runner.Writer) error { return w.Event(runner.Event{Event: "a\nb", Data: "x"}) }), nil
	case "forever":
		return runner.Stream(func(w *runner.Writer) error {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return err
				}
			}
		}), nil
	}
	return runner.Stream(func(w *runner.Writer) error {
		if _, err := w.WriteString("one\n"); err != nil {
			return err
		}
		switch what {
		case "fails":
			return errors.New("boom")
		case "uncaught":
			return runner.Get("Order", "none").Row(ctx, nil)
		}
		for {
			if n, err := runner.Query("Order").Where("item", "=", "go").Count(ctx); err != nil {
				return err
			} else if n > 0 {
				break
			}
			if err := ctx.Call("sleep", map[string]float64{"seconds": 0.01}, nil); err != nil {
				return err
			}
		}
		err1 := runner.Insert("Order", map[string]string{"item": "after"}).Row(ctx, nil)
		_, err2 := w.WriteString("two\n")
		_, err3 := w.WriteString("three\n")
		return errors.Join(err1, err2, err3)
	}).WithHeader("content-type", "text/plain"), nil
}

type document struct {
	Title string             `json:"title"`
	Scan  *runner.StoredFile `json:"scan"`
}

//go:wasmexport files
func exportFiles() { runner.Handle(files) }

//go:wasmexport sent
func exportSent() { runner.Handle(sent) }

func sent(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	form, err := ctx.Upload()
	if err != nil {
		return runner.Response{}, err
	}
	return runner.SendFile(form.File("").StoredFile, runner.SendOptions{
		Status: 201, Disposition: "attachment", Name: "copy.txt", Cache: "private",
	}).WithHeader("x-sent", "yes"), nil
}

//go:wasmexport linked
func exportLinked() { runner.Handle(linked) }

func linked(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	form, err := ctx.Upload()
	if err != nil {
		return runner.Response{}, err
	}
	var row document
	if err := runner.Insert("Document", document{"linked", &form.File("").StoredFile}).Row(ctx, &row); err != nil {
		return runner.Response{}, err
	}
	link, err := ctx.SignFile(*row.Scan, runner.LinkOptions{Expires: 10 * time.Minute, Disposition: "attachment", Name: "copy.txt"})
	return runner.OK(map[string]bool{"link": strings.HasPrefix(link, "/_files/")}), err
}

func files(ctx *runner.Context, _ *runner.Request) (runner.Response, error) {
	form, err := ctx.Upload()
	if err != nil {
		return runner.Response{}, err
	}
	var first, second document
	if err := runner.Insert("Document", document{form.Get("title"), &form.File("scan").StoredFile}).Row(ctx, &first); err != nil {
		return runner.Response{}, err
	}
	made, err := ctx.CreateFile("note.md", "text/markdown", strings.NewReader("a note ü"))
	if err != nil {
		return runner.Response{}, err
	}
	if err := runner.Insert("Document", document{"note", &made}).Row(ctx, &second); err != nil {
		return runner.Response{}, err
	}
	text, err := ctx.ReadFile(*first.Scan)
	return runner.OK(map[string]any{
		"text": string(text), "name": first.Scan.Name, "type": first.Scan.Type, "size": first.Scan.Size, "note": second.Scan.Size,
		"other": form.File("other") != nil,
	}), err
}
