package tree_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"runner.example/internal/tree"
)

func file(path, content string) tree.File {
	return tree.File{Path: path, Size: int64(len(content)), SHA256: sha256.Sum256([]byte(content))}
}

// treeOf returns the tree of a map of contents.
func treeOf(contents map[string]string) (*tree.Tree, error) {
	var files []tree.File
	for path, content := range contents {
		files = append(files, file(path, content))
	}
	return tree.New(files, func(f tree.File) ([]byte, error) { return []byte(contents[f.Path]), nil })
}

// Random trees are compared with the map that they were made from, also after their listing was parsed.
func TestATreeAgreesWithAMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "A", "é", "\xff", "a.b", "a b", "\n", ".hidden", "..."}
	for range 300 {
		contents := map[string]string{}
		for range 1 + random.IntN(12) {
			path := names[random.IntN(len(names))]
			for range random.IntN(3) {
				path += "/" + names[random.IntN(len(names))]
			}
			contents[path] = strings.Repeat("x", random.IntN(5))
		}
		conflict := false
		for path := range contents {
			for other := range contents {
				conflict = conflict || strings.HasPrefix(other, path+"/")
			}
		}
		made, err := treeOf(contents)
		if conflict != (err != nil) {
			t.Fatalf("%q: %v", contents, err)
		}
		if conflict {
			continue
		}
		parsed, err := tree.Parse(made.Listing())
		if err != nil || !slices.Equal(parsed, made.List()) {
			t.Fatalf("%q: parsed as %v, %v", contents, parsed, err)
		}
		var paths []string
		total := 0
		for _, f := range made.List() {
			paths = append(paths, f.Path)
			content, err := made.ReadFile(f.Path)
			if err != nil || string(content) != contents[f.Path] {
				t.Fatalf("%q has %q, %v; want %q", f.Path, content, err, contents[f.Path])
			}
			total += len(content)
		}
		if !slices.Equal(paths, slices.Sorted(maps.Keys(contents))) || made.Bytes() != int64(total) {
			t.Fatalf("listed %q with %d bytes, want %q with %d", paths, made.Bytes(), contents, total)
		}
		if _, there := contents["b"]; !there {
			if _, err := made.ReadFile("b"); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a file that is not there: %v", err)
			}
		}
	}
}

func TestInvalidTreesAreRefusedWithAllProblems(t *testing.T) {
	for want, paths := range map[string][]string{
		"there are no files":                 {},
		"/a is absolute":                     {"/a"},
		`"" is empty`:                        {""},
		"a//b has an empty element":          {"a//b"},
		"a/ has an empty element":            {"a/"},
		`a/./b has the element "."`:          {"a/./b"},
		`../a has the element ".."`:          {"../a"},
		`"a\x00b" has a zero byte`:           {"a\x00b"},
		"a is listed twice":                  {"a", "a"},
		"a is a file and a directory":        {"a", "a-b", "a/b/c"},
		"a/b is a file and a directory":      {"a/b", "a/b.c", "a/b/c"},
		"has 1025 bytes, and the limit":      {strings.Repeat("a/", 512) + "a"},
		"has an element of 256 bytes, and":   {strings.Repeat("a", 256)},
		"has 33 elements, and the limit":     {strings.Repeat("a/", 32) + "a"},
		`../a has the element ".."; /b is a`: {"/b", "ok", "../a"},
	} {
		var files []tree.File
		for _, path := range paths {
			files = append(files, file(path, ""))
		}
		_, err := tree.New(files, nil)
		if invalid, ok := errors.AsType[*tree.InvalidError](err); !ok || !strings.Contains(err.Error(), want) || len(invalid.Problems) == 0 {
			t.Errorf("%q: %v, want %q", paths, err, want)
		}
	}
	for _, path := range []string{strings.Repeat("a", 255), strings.Repeat("a/", 31) + "a", "a..b/...", " ", "\xff", ".git"} {
		if _, err := tree.New([]tree.File{file(path, "")}, nil); err != nil {
			t.Errorf("%q is refused: %v", path, err)
		}
	}
}

func TestLimitsOfATree(t *testing.T) {
	many := make([]tree.File, tree.MaxFiles)
	for i := range many {
		many[i] = file(fmt.Sprintf("%05d/%s", i, strings.Repeat("n", 250)), "")
	}
	full, err := tree.New(many, nil)
	if err != nil {
		t.Fatal(err)
	}
	if listing := full.Listing(); len(listing) > tree.MaxListingBytes {
		t.Errorf("the listing has %d bytes", len(listing))
	} else if parsed, err := tree.Parse(listing); err != nil || len(parsed) != tree.MaxFiles {
		t.Errorf("parsed %d files, %v", len(parsed), err)
	}
	sized := func(sizes ...int64) []tree.File {
		var files []tree.File
		for i, size := range sizes {
			files = append(files, tree.File{Path: fmt.Sprint(i), Size: size})
		}
		return files
	}
	for want, files := range map[string][]tree.File{
		"there are 20001 files, and the limit is 20000":   append(slices.Clone(many), file("more", "")),
		"0 has 33554433 bytes, and the limit is 33554432": sized(tree.MaxFileBytes + 1),
		"0 has -1 bytes": sized(-1),
		"the files have 268435457 bytes together, and the limit is 268435456": sized(
			slices.Concat(slices.Repeat([]int64{tree.MaxFileBytes}, 8), []int64{1})...),
		"and 10 more problems": sized(slices.Repeat([]int64{-1}, 30)...),
	} {
		if _, err := tree.New(files, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestContentsThatAreNotThoseOfTheTreeAreErrors(t *testing.T) {
	broken := errors.New("broken")
	for want, read := range map[error]func(tree.File) ([]byte, error){
		broken:          func(tree.File) ([]byte, error) { return nil, broken },
		tree.ErrChanged: func(tree.File) ([]byte, error) { return []byte("c0ntent"), nil },
	} {
		made, err := tree.New([]tree.File{file("a", "content")}, read)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := made.ReadFile("a"); !errors.Is(err, want) || content != nil || !strings.Contains(err.Error(), "read a: ") {
			t.Errorf("read %q, %v; want %v", content, err, want)
		}
	}
}

func TestListingsInAnotherFormAreRefused(t *testing.T) {
	entry := func(path, size string) string {
		return strings.Repeat("0", 64) + " " + size + " " + path + "\x00"
	}
	const header = "runner tree\n"
	if _, err := tree.Parse([]byte(header + entry("a", "1") + entry("b", "0"))); err != nil {
		t.Fatal(err)
	}
	for listing, want := range map[string]string{
		"":                                 "not a listing",
		"runner tree":                      "not a listing",
		header:                             "there are no files",
		header + "x":                       "is cut after 0 files",
		header + entry("a", "1") + "0":     "is cut after 1 files",
		header + "\x00":                    "entry 1 of the listing is invalid",
		header + entry("a", "01"):          "not in its canonical form",
		header + entry("a", "+1"):          "not in its canonical form",
		header + entry("a", ""):            "not in its canonical form",
		header + entry("a", "-1"):          "a has -1 bytes",
		header + entry("a", "99999999999"): "a has 99999999999 bytes",
		header + entry("b", "1") + entry("a", "1"):                                "not sorted",
		header + entry("a", "1") + entry("a", "1"):                                "a is listed twice",
		header + entry("../a", "1"):                                               `../a has the element ".."`,
		header + entry("", "1"):                                                   `"" is empty`,
		header + strings.Replace(entry("a", "1"), "0", "", 1):                     "entry 1 of the listing is invalid",
		header + strings.ToUpper(strings.Replace(entry("a", "1"), "00", "ab", 1)): "not in its canonical form",
		header + strings.Replace(entry("a", "1"), "0", "x", 1):                    "entry 1 of the listing is invalid",
		header + "0" + entry("a", "1"):                                            "not in its canonical form",
		header + strings.Repeat(entry("a", "1"), tree.MaxFiles+1):                 "more than 20000 files",
		header + strings.Repeat("0", tree.MaxListingBytes):                        "bytes, and the limit is",
		header + entry("a", "1") + entry("a-b", "1") + entry("a/b", "1"):          "a is a file and a directory",
	} {
		if files, err := tree.Parse([]byte(listing)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100q is read as %v, %v; want %q", listing, files, err, want)
		}
	}
}

// Whatever Parse accepts is the listing of a valid tree, and the only one.
func FuzzParse(f *testing.F) {
	for _, paths := range [][]string{{"a"}, {"a", "b/c", "b/d"}, {"\xff", "a\nb", " "}} {
		contents := map[string]string{}
		for _, path := range paths {
			contents[path] = path
		}
		made, err := treeOf(contents)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(made.Listing())
		f.Add(made.Listing()[:len(made.Listing())-1])
	}
	f.Add([]byte("runner tree\n"))
	f.Fuzz(func(t *testing.T, listing []byte) {
		files, err := tree.Parse(listing)
		if err != nil {
			return
		}
		again, err := tree.New(files, nil)
		if err != nil {
			t.Fatalf("accepted, and not valid: %v", err)
		}
		if !bytes.Equal(again.Listing(), listing) {
			t.Fatalf("written again as %q", again.Listing())
		}
		if !slices.IsSortedFunc(files, func(a, b tree.File) int { return cmp.Compare(a.Path, b.Path) }) {
			t.Fatal("not sorted")
		}
		for _, f := range files {
			if f.Path == "" || f.Path[0] == '/' || strings.Contains("/"+f.Path+"/", "/../") || strings.Contains(f.Path, "\x00") {
				t.Fatalf("path %q", f.Path)
			}
		}
	})
}
