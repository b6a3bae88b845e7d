package entity_test

import (
	"fmt"
	"testing"

	"runner.example/internal/caller"
	"runner.example/state/entity"
)

// Rows without declared fields have no index that could be missing, whatever is asked.
func TestAQueryOfUndeclaredRowsIsExplained(t *testing.T) {
	h := newFixture(t, `app a
apiKeys { scopes: { few: @system("few") { @grant read, write on Free where n > 0 } } }
routes("/", auth: apiKey(few), rateLimit: none) { GET /x -> x }`)
	few := &caller.Caller{Kind: caller.APIKey, KeyID: "k", Scope: "few", Capability: "few", Tenant: "t"}
	h.must(few, "insert", `{"into":"Free","values":[{"n":1,"a":"x"},{"n":2,"a":"y"}]}`)
	for _, args := range []string{`"where":[["n",">",1]]`, `"where":[["n","=",2]],"orderBy":[["a","desc"]]`, `"where":[["a","in",["y"]]]`} {
		err := h.in(few, func(a *entity.Access) error {
			var out entity.Result
			e, err := a.Explain([]byte(`{"from":"Free",`+args+`}`), &out)
			if err != nil {
				return err
			}
			want := "[@grant read on Free of scope few, if its condition holds the rows of the caller's tenant]"
			if got := fmt.Sprint(e.Rules); got != want || e.Scanned != 2 || e.Rejected != 1 || e.Missing != "" {
				t.Errorf("%s: %+v", args, e)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}
