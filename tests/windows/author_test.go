package windows_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"runner.example/tests/harness"
)

func TestAnAuthorWorksOnWindows(t *testing.T) {
	harness.NeedWindows(t)
	t.Parallel()
	const schema = "my_app.schema"
	parent := &harness.App{T: t, Dir: t.TempDir()}
	parent.Must("new", `made\my-app`)
	a := &harness.App{T: t, Dir: parent.Path("made/my-app")}
	for _, name := range []string{schema, "handlers/greetings.ts", "types/schema.d.ts"} {
		if text := harness.MustRead(t, a.Path(name)); strings.Contains(text, "\r") {
			t.Errorf("%s is written with CRLF", name)
		}
	}
	a.Write(schema, strings.Replace(harness.MustRead(t, a.Path(schema)), "rateLimit: 60/minute", "rateLimit: none", 1)) // the test polls
	parent.Must("build", `.\made\my-app`)
	parent.Must("check", "--strict", "--modules", "--app", `made\my-app`)
	a.Must("fmt", "--check")
	if text := a.Must("routes"); !strings.Contains(text, "/v1/hello/:name") || strings.Contains(text, "\r") {
		t.Errorf("%q", text)
	}

	a.Write("runner.toml", "")
	started := time.Now()
	s := a.Serve()
	t.Logf("serve: listens after %d ms", time.Since(started).Milliseconds())
	token := a.Token("greetings")
	s.Matches(200, `\{"name":"world","text":"hello world"\}`, "GET", "/v1/hello/world", "", token)
	s.Matches(201, `\{.*"name":"ada".*\}`, "POST", "/v1/greetings", `{"name":"ada","text":"good morning"}`, token)
	s.Want(401, nil, "GET", "/v1/greetings", "")
	s.Stop()

	// The handler that fails is named with slashes, and the one before stays.
	s = a.Start("dev")
	file := "handlers/greetings.ts"
	source := harness.MustRead(t, a.Path(file))
	a.Write(file, strings.Replace(source, "hello ${name}`", "hello ${name}", 1))
	s.WaitForOutput(`handlers/greetings\.ts:\d+:\d+: error: `)
	s.Matches(200, `\{"name":"world","text":"hello world"\}`, "GET", "/v1/hello/world", "", token)
	// Editors on Windows write CRLF.
	for _, text := range []string{"good day", "good night", "good morning"} {
		saved := time.Now()
		a.Write(file, strings.ReplaceAll(strings.Replace(source, "hello ${name}", text+" ${name}", 1), "\n", "\r\n"))
		s.WaitUntil(text+" to be served", func() bool { return strings.Contains(s.Get("/v1/hello/bob", token).Body, text+" bob") })
		t.Logf("dev: served %d ms after the save", time.Since(saved).Milliseconds())
	}
	s.Matches(200, `.*"name":"ada".*`, "GET", "/v1/greetings", "", token)
	if log := s.Stderr.String(); strings.Contains(log, `handlers\`) || strings.Contains(log, `build\`) {
		t.Errorf("the log has names of the app with backslashes:\n%s", log)
	}
}

const noteSchema = `app shop

entity Note {
  id: id
  text: string(1..200)
  @@index(text)
}

type NoteInput {
  text: string(1..200)
}

apiKeys {
  scopes: {
    desk: @system("shop.desk") {
      @grant read, write on Note
    }
  }
}

jobs {
  remember(text: string(1..200)) (as: desk)
}

routes("/v1", auth: apiKey(desk), rateLimit: none) {
  GET  /hello -> hello
  GET  /notes -> listNotes
  POST /notes -> addNote (input: NoteInput)
  POST /later -> later (input: NoteInput)
}
`

const noteHandlers = `import { created, insert, jobs, ok, query, type RouteRequest } from "@runner/sdk";
import { word } from "./word";

export const hello = () => ok(word);

export async function listNotes() {
  return ok((await query("Note").select("text").orderBy("text").limit(1000)).map((note) => note.text));
}

export async function addNote(req: RouteRequest) {
  return created(await insert("Note", req.body<{ text: string }>()));
}

export async function later(req: RouteRequest) {
  return ok((await jobs.enqueue("remember", req.body<{ text: string }>())).id);
}

export async function remember(req: RouteRequest) {
  return ok(await insert("Note", req.body<{ text: string }>()));
}
`

const noteWord = "export const word = `two\nlines`;\n"

// noteApp is an app with rows, keys and jobs.
func noteApp(t *testing.T, toml string) *harness.App {
	t.Helper()
	a := harness.NewApp(t, noteSchema, toml)
	a.Write("handlers/notes.ts", noteHandlers)
	a.Write("handlers/word.ts", noteWord)
	return a
}

// notes are the texts of the rows.
func notes(s *harness.Server, token string) (texts []string) {
	s.T.Helper()
	s.Want(200, &texts, "GET", "/v1/notes", "", "Authorization: Bearer "+token)
	return texts
}

func add(s *harness.Server, token, text string) {
	s.T.Helper()
	s.Want(201, nil, "POST", "/v1/notes", fmt.Sprintf(`{"text":%q}`, text), "Authorization: Bearer "+token)
}

// activeRelease is the release that a's node serves.
func activeRelease(t *testing.T, a *harness.App, args ...string) string {
	t.Helper()
	var list struct{ Active struct{ ID string } }
	text := a.Must(append([]string{"releases", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &list); err != nil || list.Active.ID == "" {
		t.Fatalf("%s: %v", text, err)
	}
	return list.Active.ID
}

// onHost makes an app run by the runner for this machine.
func onHost(a *harness.App, binary string) *harness.App {
	a.Binary, a.Native = binary, true
	return a
}

// copyApp copies the sources of an app, each changed.
func copyApp(t *testing.T, from *harness.App, names []string, change func(text string) string) *harness.App {
	t.Helper()
	to := &harness.App{T: t, Dir: t.TempDir()}
	for _, name := range names {
		to.Write(name, change(harness.MustRead(t, from.Path(name))))
	}
	to.ShareCode()
	return to
}

// windowsPath is the path under which wine has a file of this machine.
func windowsPath(drive, path string) string { return drive + ":" + strings.ReplaceAll(path, "/", `\`) }

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
