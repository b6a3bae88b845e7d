package jobs_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"runner.example/tests/harness"
)

const appSchema = `
app ledger
secret MAIL_KEY
auth {
  session cookie { }
  tenant: Org
}
entity Org { id: id name: string(1..20) }
entity Entry {
  id: id
  org: Org @tenant
  text: string
  @@index(text)
  @@allow read, write to session
}
entity Note {
  id: id
  text: string
}
apiKeys {
  scopes: {
    desk: @system("desk") { @grant read, write, delete on Entry },
    reader: @system("reader") { @grant read on Entry },
    notes: @system("notes") {
      @grant read, write on Note, Entry
      @allTenants
    }
  }
}
jobs(retries: 2, backoff: 1s, timeout: 20s) {
  /// Writes an entry.
  write(text: string(1..100), times: int = 1) (retries: 100)
  note(text: string) (as: notes)
  reads(text: string) (as: reader, retries: 0)
  fails(until: int, status: int?)
  slow(text: string) (timeout: 5s, retries: 100)
  waits(seconds: int) (timeout: 60s, retries: 0, concurrency: 1 by tenant)
  late()
  leaks() (retries: 0)
  tick()
  bomb() (retries: 0)
  nap0(compute: bool = false) (retries: 0) nap1(compute: bool = false) (retries: 0) nap2(compute: bool = false) (retries: 0) nap3(compute: bool = false) (retries: 0)
  nap4(compute: bool = false) (retries: 0) nap5(compute: bool = false) (retries: 0) nap6(compute: bool = false) (retries: 0) nap7(compute: bool = false) (retries: 0)
  night(text: string = "night") (as: notes, schedule: "0 3 * * *" in "Europe/Berlin")
}
routes("/", auth: apiKey(desk, notes), rateLimit: none) {
  POST /jobs      -> enqueueJob
  POST /both      -> enqueueAndInsert
  POST /fail      -> enqueueAndFail
  POST /cancel    -> cancelJob
  POST /insert    -> insertOne
  POST /later     -> insertAndEnqueueLater
  POST /many      -> enqueueMany
  POST /odd       -> enqueueOdd
  GET  /entries   -> entries
  GET  /count     -> count
}
`

const appHandlers = `
import { error, get, getContext, insert, jobs, ok, query, type RouteRequest } from "@runner/sdk";
type Wanted = { name: "write"; params: { text: string }; options?: object };
export async function enqueueJob(req: RouteRequest) {
  const { name, params, options } = req.body<Wanted>();
  return ok(await jobs.enqueue(name, params, options));
}
export async function enqueueAndInsert(req: RouteRequest) {
  const { text } = req.body<{ text: string }>();
  await insert("Entry", { text: "request " + text });
  return ok(await jobs.enqueue("write", { text }));
}
export async function enqueueAndFail(req: RouteRequest) {
  await jobs.enqueue("write", { text: "never" });
  return error(422, "changed my mind");
}
export async function cancelJob(req: RouteRequest) { return ok({ cancelled: await jobs.cancel(req.body().id) }); }
export async function insertOne() { await insert("Entry", { text: "one" }); return ok(); }
export async function insertAndEnqueueLater() {
  await insert("Entry", { text: "one" });
  await jobs.enqueue("tick", {}, { delay: 3600 });
  return ok();
}
export async function enqueueMany(req: RouteRequest) {
  const { name, n, delay } = req.body<{ name: "tick"; n: number; delay: number }>();
  for (let i = 0; i < n; i++) await jobs.enqueue(name, {}, { delay });
  return ok();
}
async function nap(req: RouteRequest) {
  console.log("nap begins");
  if (req.body().compute) for (const end = Date.now() + 20_000; Date.now() < end; );
  else await new Promise((done) => setTimeout(done, 20_000));
  console.log("nap has ended");
  return ok();
}
export { nap as nap0, nap as nap1, nap as nap2, nap as nap3, nap as nap4, nap as nap5, nap as nap6, nap as nap7 };
export async function enqueueOdd() {
  const odd = [{ delay: NaN }, { delay: Infinity }, { delay: 1e300 }, { at: new Date("tomorrow") }, { at: new Date(8.64e15) }];
  const messages = [];
  for (const options of odd) {
    try {
      await jobs.enqueue("write", { text: "odd" }, options);
    } catch (error) {
      messages.push((error as Error).message);
    }
  }
  try {
    await getContext().client.apiKeys.create({ scope: "desk", expiresIn: NaN });
  } catch (error) {
    messages.push((error as Error).message);
  }
  return ok(messages);
}
export const entries = (req: RouteRequest) => ok(query("Entry").select("text").orderBy("text").limit(1000));
export async function count() { return ok({ count: (await query("Entry").select("text").limit(1000)).length }); }

export async function write(req: RouteRequest) {
  const { text, times } = req.body<{ text: string; times: number }>();
  for (let i = 0; i < times; i++) await insert("Entry", { text });
  const { auth, job } = getContext();
  console.log("wrote " + text + " as " + auth.kind + " of " + auth.tenant + ", attempt " + job!.attempt);
  return ok();
}
export async function note(req: RouteRequest) {
  const { auth } = getContext();
  await insert("Entry", { text: "note of " + auth.kind + " " + auth.tenant + " " + req.body().text + ", sees " + (await query("Entry").select("text")).length });
  return ok();
}
export async function reads(req: RouteRequest) { await insert("Entry", { text: req.body().text }); return ok(); }
export async function fails(req: RouteRequest) {
  const { until, status } = req.body<{ until: number; status: number | null }>();
  const { attempt } = getContext().job!;
  await insert("Entry", { text: "attempt " + attempt });
  if (attempt < until) {
    if (status) return error(status, "not yet");
    throw new Error("not yet");
  }
  return ok();
}
export function late() { console.log("late by " + (Date.now() - getContext().job!.scheduledFor.getTime()) + " ms"); return ok(); }
export async function leaks() { throw new Error("the mailer refused key " + (await getContext().secret("MAIL_KEY"))); }
export async function tick() { await insert("Entry", { text: "tick" }); return ok(); }
export async function bomb() { for (let i = 0; i < 20; i++) await jobs.enqueue("bomb", {}); return ok(); }
export async function slow(req: RouteRequest) {
  const { text } = req.body<{ text: string }>();
  console.log("slow begins " + text);
  await insert("Entry", { text });
  await new Promise((done) => setTimeout(done, 300));
  return ok();
}
export async function waits(req: RouteRequest) {
  const { seconds } = req.body<{ seconds: number }>();
  console.log("waits for " + seconds);
  await new Promise((done) => setTimeout(done, seconds * 1000));
  console.log("went on after " + seconds);
  await insert("Entry", { text: "waited " + seconds });
  return ok();
}
export async function night(req: RouteRequest) {
  await insert("Note", { text: req.body().text + " " + getContext().job!.scheduledFor.toISOString() });
  return ok();
}
`

// appModule builds the handlers.
var appModule = sync.OnceValues(func() ([]byte, error) {
	return harness.BuildModule("ledger", map[string]string{"app.schema": appSchema, "handlers/ledger.ts": appHandlers})
})

const appSettings = "[telemetry]\naccess_log = true\n"

func newApp(t testing.TB, settings string) (*harness.App, string) {
	t.Helper()
	module, err := appModule()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.NewApp(t, appSchema, settings+"\n[secrets]\nMAIL_KEY = \"c4n4ry-of-the-mail\"\n")
	a.Write("build/ledger.wasm", string(module))
	token := a.Token("desk", "--tenant", "acme")
	a.Write("orgs.jsonl", `{"id":"acme","name":"Acme"}`+"\n"+`{"id":"blue","name":"Blue"}`+"\n")
	a.Must("data", "import", "Org", "orgs.jsonl")
	return a, token
}

// desk sends requests with an API key.
type desk struct {
	*harness.Server
	token string
}

func serve(t testing.TB) (*harness.App, desk) {
	t.Helper()
	a, token := newApp(t, appSettings)
	return a, desk{a.Serve(), token}
}

func (d desk) post(path, body string) harness.Answer {
	return d.Do("POST", path, body, "authorization: Bearer "+d.token, "content-type: application/json")
}

func (d desk) enqueue(body string) (id string) {
	d.T.Helper()
	got := d.post("/jobs", body)
	var e struct{ ID string }
	if got.Status != 200 || json.Unmarshal([]byte(got.Body), &e) != nil {
		d.T.Fatalf("enqueue %s: %d %s", body, got.Status, got.Body)
	}
	return e.ID
}

// texts are the texts of all entries of the tenant.
func (d desk) texts() (all []string) {
	d.T.Helper()
	var rows struct{ Rows []struct{ Text string } }
	got := d.Get("/entries", d.token)
	if err := json.Unmarshal([]byte(got.Body), &rows.Rows); err != nil {
		d.T.Fatalf("%d %s: %v", got.Status, got.Body, err)
	}
	for _, row := range rows.Rows {
		all = append(all, row.Text)
	}
	return all
}

// waitFor waits until the tenant has exactly these entries.
func (d desk) waitFor(texts ...string) {
	d.T.Helper()
	want := strings.Join(texts, ", ")
	d.WaitUntil("entries "+want, func() bool { return strings.Join(d.texts(), ", ") == want })
}
