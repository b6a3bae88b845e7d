// Command gen writes runner.toml of the repository, from the options of the packages,
// docs/admin-openapi.json, from the operations of a node, and
// notices.txt.gz: the licences of everything that the runner is linked with, from the module
// cache and the Go toolchain. Run it as
//
//	go generate ./cmd/runner
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"runner.example/node/admin/server"
)

func main() {
	log.SetFlags(0)
	settings, err := runnerTOML("../..")
	if err == nil {
		err = os.WriteFile("../../runner.toml", settings, 0o644)
	}
	if err == nil {
		err = os.WriteFile("../../docs/admin-openapi.json", server.OpenAPI(), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
	text, err := notices("../..") // go generate runs in cmd/runner
	if err != nil {
		log.Fatal(err)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	_, err = z.Write(text)
	if err := errors.Join(err, z.Close()); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("notices.txt.gz", packed.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// platforms are those that the runner is built for: each may link other packages.
var platforms = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// legal is what files of licences are called.
var legal = regexp.MustCompile(`^(?i:licen[cs]e|copying|notice|patents)([.-].*)?$`)

// listed is what go list tells of a package.
type listed struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// part is something that the runner is made of, and the files that tell its terms.
type part struct {
	name  string
	dir   string
	files map[string]bool // by path
}

func notices(root string) ([]byte, error) {
	parts := map[string]*part{}
	for _, p := range platforms {
		if err := addLinked(parts, root, p[0], p[1]); err != nil {
			return nil, err
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	library := &part{name: "Go's library and runtime, " + runtime.Version(), dir: strings.TrimSpace(string(goroot))}
	if err := library.add(library.dir); err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	all := []*part{library}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		all = append(all, parts[name])
	}
	return write(own, all)
}

// addLinked adds the modules that the runner links on a platform.
func addLinked(parts map[string]*part, root, system, machine string) error {
	list := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/runner")
	list.Dir, list.Stderr = root, os.Stderr
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+machine, "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list what the runner links for %s/%s: %w", system, machine, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		m := pkg.Module
		if m == nil || m.Main || strings.HasPrefix(m.Path, "runner.example/") {
			continue
		}
		name := m.Path + " " + m.Version
		if parts[name] == nil {
			parts[name] = &part{name: name, dir: m.Dir}
		}
		if err := parts[name].add(pkg.Dir); err != nil {
			return err
		}
	}
}

// add finds the files beside a package, and in the folders above it.
func (p *part) add(dir string) error {
	if p.files == nil {
		p.files = map[string]bool{}
	}
	for ; strings.HasPrefix(dir, p.dir); dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && legal.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
				p.files[filepath.Join(dir, e.Name())] = true
			}
		}
	}
	return nil
}

// write gives each text once, under the names of all that it is for.
func write(own []byte, parts []*part) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "The runner is under the Apache License, Version 2.0:\n\n%s\n", bytes.Trim(own, "\n"))
	out.WriteString("\nIt is linked of what follows, each under the terms below it.\n")
	heads := map[string][]string{}
	var texts []string
	for _, p := range parts {
		if len(p.files) == 0 {
			return nil, fmt.Errorf("%s: no licence found in %s", p.name, p.dir)
		}
		for _, file := range slices.Sorted(maps.Keys(p.files)) {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			text := strings.Trim(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")
			if heads[text] == nil {
				texts = append(texts, text)
			}
			rel, err := filepath.Rel(p.dir, file)
			if err != nil {
				return nil, err
			}
			heads[text] = append(heads[text], fmt.Sprintf("%s (%s)", p.name, filepath.ToSlash(rel)))
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), strings.Join(heads[text], "\n"), text)
	}
	return out.Bytes(), nil
}
