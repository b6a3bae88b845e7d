package secret_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"runner.example/internal/secret"
)

func env(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := pairs[name]
		return value, ok
	}
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASecretComesFromTheFirstSourceThatHasIt(t *testing.T) {
	path := writeFile(t, "from a file\n")
	credentials := t.TempDir()
	if err := os.WriteFile(filepath.Join(credentials, "secrets_A"), []byte("a credential\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"RUNNER_SECRETS_A": "from the environment", "RUNNER_SECRETS_A_FILE": path, "CREDENTIALS_DIRECTORY": credentials}
	section := map[string]string{"A": "from runner.toml", "OTHER": ""}

	for _, c := range []struct {
		without []string
		want    string
	}{
		{nil, "from the environment"},
		{[]string{"RUNNER_SECRETS_A"}, "from a file"},
		{[]string{"RUNNER_SECRETS_A", "RUNNER_SECRETS_A_FILE"}, "a credential"},
		{[]string{"RUNNER_SECRETS_A", "RUNNER_SECRETS_A_FILE", "CREDENTIALS_DIRECTORY"}, "from runner.toml"},
	} {
		left := map[string]string{}
		for k, v := range all {
			left[k] = v
		}
		for _, name := range c.without {
			delete(left, name)
		}
		values, err := secret.Resolve([]string{"A"}, env(left), section)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := values.Get("A")
		if !ok || got.Reveal() != c.want {
			t.Errorf("without %v: %q, %v; want %q", c.without, got.Reveal(), ok, c.want)
		}
	}
}

// A service may have credentials for something else.
func TestASecretWithoutACredentialComesFromTheFile(t *testing.T) {
	values, err := secret.Resolve([]string{"A"}, env(map[string]string{"CREDENTIALS_DIRECTORY": t.TempDir()}), map[string]string{"A": "from runner.toml"})
	if got, _ := values.Get("A"); err != nil || got.Reveal() != "from runner.toml" {
		t.Errorf("%q, %v", got.Reveal(), err)
	}
}

func TestOneNewlineAtTheEndOfASecretFileIsCut(t *testing.T) {
	for content, want := range map[string]string{
		"x": "x", "x\n": "x", "x\r\n": "x", "x\n\n": "x\n", " x \n": " x ", "a\nb\n": "a\nb",
	} {
		path := writeFile(t, content)
		values, err := secret.Resolve([]string{"A"}, env(map[string]string{"RUNNER_SECRETS_A_FILE": path}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := values.Get("A"); got.Reveal() != want {
			t.Errorf("%q is read as %q, want %q", content, got.Reveal(), want)
		}
	}
}

func TestEveryMissingSecretIsNamedAtOnce(t *testing.T) {
	_, err := secret.Resolve([]string{"A", "B", "C", "D"},
		env(map[string]string{"RUNNER_SECRETS_B": "set", "RUNNER_SECRETS_D": ""}), nil)
	if err == nil {
		t.Fatal("missing secrets are accepted")
	}
	for _, want := range []string{"A, C", "RUNNER_SECRETS_A", "RUNNER_SECRETS_C", "[secrets]", "D is empty in the variable RUNNER_SECRETS_D"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "RUNNER_SECRETS_B") {
		t.Errorf("error %q names a secret that has a value", err)
	}
}

func TestAnEmptySecretIsRefusedFromEverySource(t *testing.T) {
	for name, c := range map[string]struct {
		env, section map[string]string
		says         string
	}{
		"environment":  {map[string]string{"RUNNER_SECRETS_A": ""}, map[string]string{"A": "set"}, "the variable RUNNER_SECRETS_A"},
		"file":         {map[string]string{"RUNNER_SECRETS_A_FILE": writeFile(t, "\n")}, nil, "the file"},
		"missing file": {map[string]string{"RUNNER_SECRETS_A_FILE": "/nowhere/secret"}, nil, "RUNNER_SECRETS_A_FILE names"},
		"runner.toml":  {nil, map[string]string{"A": ""}, "[secrets] in runner.toml"},
		"blanks":       {map[string]string{"RUNNER_SECRETS_A": " \t\n"}, nil, "empty in the variable RUNNER_SECRETS_A"},
		"blank file":   {map[string]string{"RUNNER_SECRETS_A_FILE": writeFile(t, " \n \n")}, nil, "empty in the file that RUNNER_SECRETS_A_FILE names"},
	} {
		_, err := secret.Resolve([]string{"A"}, env(c.env), c.section)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
	}
}

func TestASecretMustBeText(t *testing.T) {
	for name, pairs := range map[string]map[string]string{
		"the variable RUNNER_SECRETS_A":             {"RUNNER_SECRETS_A": "c4n4ry\xff"},
		"the file that RUNNER_SECRETS_A_FILE names": {"RUNNER_SECRETS_A_FILE": writeFile(t, "c4n4ry\xc3\x28")},
	} {
		_, err := secret.Resolve([]string{"A"}, env(pairs), nil)
		if err == nil || !strings.Contains(err.Error(), "secret A is not text in UTF-8 in "+name) || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAValueGivenAsAFileNameIsNotShown(t *testing.T) {
	for _, value := range []string{"c4n4ry", "c4n4ry/c4n4ry", strings.Repeat("c4n4ry", 1000), "c4n4ry\x00"} {
		_, err := secret.Resolve([]string{"A"}, env(map[string]string{"RUNNER_SECRETS_A_FILE": value}), nil)
		if err == nil || strings.Contains(err.Error(), "c4n4ry") || !strings.Contains(err.Error(), "RUNNER_SECRETS_A_FILE") {
			t.Errorf("error %v", err)
		}
	}
}

func TestASecretNamedLikeAFileVariableKeepsItsValue(t *testing.T) {
	values, err := secret.Resolve([]string{"KEY", "KEY_FILE"},
		env(map[string]string{"RUNNER_SECRETS_KEY_FILE": "a value"}), map[string]string{"KEY": "another"})
	if err != nil {
		t.Fatal(err)
	}
	key, _ := values.Get("KEY")
	file, _ := values.Get("KEY_FILE")
	if key.Reveal() != "another" || file.Reveal() != "a value" {
		t.Errorf("KEY is %q, KEY_FILE is %q", key.Reveal(), file.Reveal())
	}
}

func TestUndeclaredSecretsAreNotAvailable(t *testing.T) {
	values, err := secret.Resolve(nil, env(map[string]string{"RUNNER_SECRETS_A": "x"}), map[string]string{"A": "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := values.Get("A"); ok {
		t.Error("an undeclared secret is there")
	}
	if s := fmt.Sprintf("%+v", values); strings.Contains(s, "x") && strings.Contains(s, "A") {
		t.Errorf("values print as %s", s)
	}
}
