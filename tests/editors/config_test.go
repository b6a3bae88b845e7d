package editors_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"runner.example/tests/harness"
)

// runPage runs the block of docs/editors.md with that mark in a checkout, with a home directory of its own, and returns
// the directory.
func runPage(t *testing.T, mark string) (home string) {
	t.Helper()
	page := harness.MustRead(t, harness.RepoFile("docs/editors.md"))
	block := regexp.MustCompile("(?ms)^```sh " + mark + "\n(.*?)^```$").FindStringSubmatch(page)
	if block == nil {
		t.Fatalf("docs/editors.md has no block for %s", mark)
	}
	home = t.TempDir()
	cmd := exec.Command("bash", "-euc", block[1])
	cmd.Dir, cmd.Env = harness.RepoFile("."), append(os.Environ(), "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v\n%s", block[1], err, out)
	}
	return home
}

const demoSchema = `app demo
/* a comment
   of two lines */
entity Order {
  id: id
  number: string(1..20) = "A\n" // a comment
  @@allow read to session when number == "x"
}
routes("/v1", auth: none) {
  GET /a//b -> listOrders
}
`

// Neovim highlights a schema that it opens, indents what is typed in it, and says what is missing.
func TestNeovimOpensSchemas(t *testing.T) {
	if _, err := exec.LookPath("nvim"); err != nil {
		t.Skip("nvim is missing: tools/setup.sh installs it")
	}
	home, app := runPage(t, "nvim"), t.TempDir()
	schema := filepath.Join(app, "demo.schema")
	if err := os.WriteFile(schema, []byte(demoSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "ask.lua")
	err := os.WriteFile(script, []byte(`
		local out = {}
		local function say(text) table.insert(out, text) end
		say("filetype " .. vim.bo.filetype)
		say("comments " .. vim.bo.commentstring)
		for _, word in ipairs({ "entity", "two", "id:", "of", '"A', "\\n", "allow", "when", "1", "GET", "//b", "// a" }) do
			vim.fn.cursor(1, 1)
			local at = vim.fn.searchpos("\\V" .. vim.fn.escape(word, "\\"), "c")
			say(word .. " " .. vim.fn.synIDattr(vim.fn.synID(at[1], at[2], 1), "name"))
		end
		vim.cmd([[exe "normal Goentity Next {\<CR>id: id\<CR>name: text\<CR>}\<CR>app x"]])
		for _, line in ipairs(vim.fn.getline(12, "$")) do say("|" .. line) end
		vim.fn.writefile(out, vim.env.ANSWER)
		vim.cmd("qa!")
	`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	answer := filepath.Join(t.TempDir(), "answer")
	nvim, _ := exec.LookPath("nvim")
	cmd := exec.Command(nvim, "--headless", schema, "-c", "luafile "+script)
	cmd.Dir = app
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "ANSWER=" + answer} // without a runner
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the program runner is not on the PATH") || strings.Contains(string(out), "Error") {
		t.Fatalf("nvim: %v\n%s", err, out)
	}
	const want = `filetype runner-schema
comments // %s
entity runnerDeclaration
two runnerComment
id: runnerName
of runnerComment
"A runnerString
\n runnerEscape
allow runnerAttribute
when runnerWord
1 runnerNumber
GET runnerMethod
//b runnerPath
// a runnerComment
|entity Next {
|  id: id
|  name: text
|}
|app x
`
	if got := harness.MustRead(t, answer); got != want {
		t.Errorf("Neovim has\n%s\nwant\n%s", got, want)
	}
}

// With the configuration, Neovim starts one server for an app, which reports what is wrong in a schema, also for a handler.
func TestNeovimStartsTheServer(t *testing.T) {
	if _, err := exec.LookPath("nvim"); err != nil {
		t.Skip("nvim is missing: tools/setup.sh installs it")
	}
	app := harness.NewApp(t, "routes(\"/\") {\n  GET /a -> a\n}\n", "")
	app.Write("handlers/a.ts", "export const a = () => 1;\n")
	script := filepath.Join(t.TempDir(), "ask.lua")
	err := os.WriteFile(script, []byte(`
		local out = {}
		local function clients() -- Neovim 0.7 has another function
			return vim.lsp.get_clients and vim.lsp.get_clients({ bufnr = 0 }) or vim.tbl_values(vim.lsp.buf_get_clients(0))
		end
		vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 5)
		for _, d in ipairs(vim.diagnostic.get(0)) do table.insert(out, d.lnum + 1 .. " " .. d.code) end
		for _, file in ipairs({ "handlers/a.ts", "app.schema" }) do
			vim.cmd("edit " .. file)
			for _, client in ipairs(clients()) do
				table.insert(out, client.name .. " " .. client.id .. " " .. vim.fn.fnamemodify(client.config.root_dir, ":t"))
			end
		end
		vim.cmd("edit " .. vim.fn.tempname() .. ".ts")
		table.insert(out, #clients() .. " beside the app")
		vim.fn.writefile(out, vim.env.ANSWER)
		vim.cmd("qa!")
	`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	answer := filepath.Join(t.TempDir(), "answer")
	cmd := exec.Command("nvim", "--headless", "app.schema", "-c", "luafile "+script)
	cmd.Dir = app.Dir
	home := runPage(t, "nvim")
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "ANSWER="+answer,
		"PATH="+filepath.Dir(harness.Binary)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Error") {
		t.Fatalf("nvim: %v\n%s", err, out)
	}
	name := filepath.Base(app.Dir)
	if got, want := harness.MustRead(t, answer), "2 E400\nrunner 1 "+name+"\nrunner 1 "+name+"\n0 beside the app\n"; got != want {
		t.Errorf("Neovim has\n%s\nwant\n%s", got, want)
	}
}

func TestTheConfigurationOfHelixNamesTheServer(t *testing.T) {
	home := runPage(t, "helix")
	var config struct {
		LanguageServer map[string]struct {
			Command string
			Args    []string
		} `toml:"language-server"`
		Language []struct {
			Name            string
			FileTypes       []string `toml:"file-types"`
			LanguageServers []string `toml:"language-servers"`
		}
	}
	if _, err := toml.DecodeFile(filepath.Join(home, ".config/helix/languages.toml"), &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Language) != 1 || len(config.Language[0].LanguageServers) != 1 || config.Language[0].FileTypes[0] != "schema" {
		t.Fatalf("languages: %+v", config.Language)
	}
	server := config.LanguageServer[config.Language[0].LanguageServers[0]]
	if command := strings.Join(append([]string{server.Command}, server.Args...), " "); command != "runner lsp" {
		t.Errorf("Helix starts %q", command)
	}
}
