package generate_test

import (
	"os"
	"strings"
	"testing"

	"runner.example/generate"
)

// That it is TypeScript, and that it does what it says, is for the tests of the whole.
func TestAClientHasAMethodForEachRouteAndExposedFunction(t *testing.T) {
	always, err := os.ReadFile("client.ts")
	if err != nil {
		t.Fatal(err)
	}
	got := string(generate.Client(compile(t, everything(t))))
	made, ok := strings.CutSuffix(got, "\n"+string(always))
	if !ok {
		t.Error("the client does not end with what every client has")
	}
	golden(t, "testdata/everything.client", made)
	if again := string(generate.Client(compile(t, everything(t)))); again != got {
		t.Error("the same schema makes another client the second time")
	}
}

func TestNoTwoRoutesHaveOneNameInAClient(t *testing.T) {
	got := string(generate.Client(compile(t, `routes("/", auth: none, rateLimit: none) {
		GET /a-b -> x
		GET /a.b -> x
		GET /a_b -> xGetAB2
		GET / -> x
		GET /y -> y
	}`)))
	for _, line := range []string{
		`    xGetAB: (request) => send("GET", "/a-b", request),`,
		`    xGetAB3: (request) => send("GET", "/a.b", request),`,
		`    xGetAB2: (request) => send("GET", "/a_b", request),`,
		`    xGet: (request) => send("GET", "/", request),`,
		`    y: (request) => send("GET", "/y", request),`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("there is no line %s", line)
		}
	}
}
