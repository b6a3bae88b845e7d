package languages_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"runner.example/tests/harness"
)

// typed copies an app with its handlers, generates its types, and adds the tsconfig.json of
// a new app.
func typed(t *testing.T, directory string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, "", "")
	a.Must("new", "fresh")
	if err := errors.Join(
		os.Remove(a.Path("app.schema")),
		os.Rename(a.Path("fresh/tsconfig.json"), a.Path("tsconfig.json")),
		os.RemoveAll(a.Path("fresh")),
	); err != nil {
		t.Fatal(err)
	}
	schemas, err := filepath.Glob(filepath.Join(directory, "*.schema"))
	if err != nil || len(schemas) == 0 {
		t.Fatalf("no schema in %s: %v", directory, err)
	}
	for _, file := range schemas {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a.Write(filepath.Base(file), string(text))
	}
	for _, folder := range []string{"handlers", "test"} {
		from := filepath.Join(directory, folder)
		if _, err := os.Stat(from); folder == "test" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.CopyFS(a.Path(folder), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	a.Must("generate", "types")
	return a
}

func TestTheTypesOfASchemaReportExactlyTheErrors(t *testing.T) {
	a := typed(t, harness.Testdata("types"))
	said := harness.CheckTypes(t, a)
	expected := 0
	for _, file := range []string{"handlers/wrong.ts", "test/wrong.test.ts"} {
		for i, line := range strings.Split(harness.MustRead(t, harness.Testdata("types/"+file)), "\n") {
			_, want, ok := strings.Cut(line, " //! ")
			if !ok {
				continue
			}
			expected++
			at := file + ":" + strconv.Itoa(i+1)
			if !strings.Contains(said[at], want) {
				t.Errorf("%s: the type checker reports %q, want %s", at, said[at], want)
			}
			delete(said, at)
		}
	}
	for at, text := range said {
		t.Errorf("%s: unexpected error of the type checker: %s", at, text)
	}
	if expected < 30 {
		t.Errorf("the test expects only %d errors", expected)
	}

	before, err := os.ReadFile(a.Path("types/schema.d.ts"))
	if err != nil {
		t.Fatal(err)
	}
	a.Must("generate", "types", "--out", "again.d.ts")
	if again, err := os.ReadFile(a.Path("again.d.ts")); err != nil || string(again) != string(before) {
		t.Errorf("the second generation of the same schema differs: %v", err)
	}
}

// Operators call functions without a tenant.
func TestAnAppWithFunctionsMaySetTheTenantOfNewRows(t *testing.T) {
	a := typed(t, harness.Testdata("types"))
	a.Write("functions.schema", "functions {\n  move(order: string(26)) -> int\n}\n")
	a.Must("generate", "types")
	a.Remove("handlers", "test")
	a.Write("handlers/move.ts", `import { insert, type Insert } from "@runner/sdk";

const values: Insert<"Line"> = { shop: "s1", order: "o1", sku: "a" };
export const move = async () => (await insert("Line", values)).id;
export const order: Insert<"Order">["shop"] = "s1";
`)
	for at, text := range harness.CheckTypes(t, a) {
		t.Errorf("%s: %s", at, text)
	}
}

func TestExamplesAndNewAppsPassTheTypeChecker(t *testing.T) {
	for _, row := range []struct {
		lang, handlers, example string
		check                   func(t *testing.T, a *harness.App) map[string]string
	}{
		{"ts", "*.ts", "orders", harness.CheckTypes},
		{"python", "*.py", "expenses", func(t *testing.T, a *harness.App) map[string]string {
			return harness.CheckPython(t, a, "pyrightconfig.json")
		}},
	} {
		fresh := harness.NewApp(t, "", "")
		fresh.Must("new", "hello", "--lang", row.lang)
		fresh.Dir = fresh.Path("hello")
		apps := map[string]*harness.App{"runner new": fresh}
		examples, err := filepath.Glob(harness.RepoFile("plugins/examples/*/handlers/" + row.handlers))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range examples {
			directory := filepath.Dir(filepath.Dir(file))
			if apps[directory] == nil {
				apps[directory] = typedExample(t, directory)
			}
		}
		if apps[harness.RepoFile("plugins/examples/"+row.example)] == nil {
			t.Errorf("the example %s was not found", row.example)
		}
		for name, a := range apps {
			for at, text := range row.check(t, a) {
				t.Errorf("%s in %s: %s: %s", name, row.lang, at, text)
			}
		}
	}
}

// typedExample is a copy of an example without what was built, with its types.
func typedExample(t *testing.T, directory string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, "", "")
	if err := os.Remove(a.Path("app.schema")); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"*.schema", "*.json"} {
		files, err := filepath.Glob(filepath.Join(directory, form))
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s in %s: %v", form, directory, err)
		}
		for _, file := range files {
			a.Write(filepath.Base(file), harness.MustRead(t, file))
		}
	}
	for _, folder := range []string{"handlers", "test"} {
		from := filepath.Join(directory, folder)
		if _, err := os.Stat(from); folder == "test" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.CopyFS(a.Path(folder), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	a.Must("generate", "types")
	return a
}

// Without entities or without generated types, any name is accepted and rows have type any.
func TestAnAppWithoutEntitiesMayUseAnyNames(t *testing.T) {
	for name, keep := range map[string]bool{"with the types of the schema": true, "without": false} {
		a := typed(t, harness.Testdata("types"))
		a.Write("shop.schema", `apiKeys { scopes: { all: @system("all") { @grant read on Anything } } }
type number { class: int }
routes("/", auth: apiKey(all), rateLimit: none) { GET /free -> free }
`)
		a.Must("generate", "types")
		if !keep {
			if err := os.Remove(a.Path("types/schema.d.ts")); err != nil {
				t.Fatal(err)
			}
		}
		a.Remove("handlers", "test")
		a.Write("handlers/free.ts", `import { get, getContext, insert, ok, query, select, update, type RouteRequest } from "@runner/sdk";

interface Order { id: string; item: string; qty?: number }

export async function free(req: RouteRequest) {
  const { item } = req.body();
  await insert("Anything", { item, n: 1 });
  const order = await insert<Order>("Anything", { item, n: 1 });
  const orders = await query<Order>("Anything").select("id", "item").where("qty", ">", 1).where("item", "in", ["a"]).orderBy("item");
  const many = await insert<Order>("Anything", [{ item }]);
  const rows = await select("id", "item").from("Anything").where("whatever", "=", 1);
  const one = await get<Order>("Anything", "a", "item");
  const n: number = await update("Anything", { item }).where("id", "=", order.id);
  const roles: readonly string[] = getContext().auth.roles;
  return ok([orders[0].item, many[0].qty, rows[0].item, one.item, n, roles]);
}

query<Order>("Anything").select("itm"); //! wrong
`)
		said := harness.CheckTypes(t, a)
		if at := "handlers/free.ts:18"; !strings.Contains(said[at], `'"itm"' is not assignable`) {
			t.Errorf("%s: a field that is not in the given type: %q", name, said[at])
		} else {
			delete(said, at)
		}
		for at, text := range said {
			t.Errorf("%s: %s: %s", name, at, text)
		}
	}
}

func TestASavedSchemaUpdatesItsTypes(t *testing.T) {
	s := harness.Develop(t)
	types := func() string {
		t.Helper()
		text, err := os.ReadFile(s.App.Path("types/schema.d.ts"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if !strings.Contains(types(), `scope: "say";`) {
		t.Errorf("the first types are\n%s", types())
	}
	s.App.Write("app.schema", strings.NewReplacer("GET /hello -> hello", "GET /more -> hello", "say", "tell").Replace(harness.DevSchema))
	s.WaitForBody("/v1/more", "one")
	if !strings.Contains(types(), `scope: "tell";`) {
		t.Errorf("the types are still\n%s", types())
	}
}

// The examples of the page have apps of their own, so the names of a schema are not checked.
func TestTheExamplesOfTestsPassTheTypeChecker(t *testing.T) {
	a := typed(t, harness.Testdata("types"))
	a.Remove("handlers", "test", "types/schema.d.ts")
	a.Write("handlers/orders.ts", "export const total = (of: number[]) => of.length;\n")
	blocks := regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllStringSubmatch(harness.MustRead(t, harness.RepoFile("docs/typescript/testing.md")), -1)
	for i, block := range blocks {
		a.Write("test/example"+strconv.Itoa(i)+".test.ts", block[1])
	}
	for at, text := range harness.CheckTypes(t, a) {
		t.Errorf("%s: %s", at, text)
	}
	if len(blocks) < 5 {
		t.Errorf("docs/typescript/testing.md has %d examples", len(blocks))
	}
}
