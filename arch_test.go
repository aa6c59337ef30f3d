package mcpengine_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const module = "github.com/mcpengine/mcpengine"

// layers says which of our packages the files of a folder may import, besides those of the folder itself. A folder
// covers its subfolders unless these have an entry of their own. Test files are free.
var layers = map[string][]string{
	".":                {},
	"codec":            {},
	"actors":           {"codec"},
	"engine":           {"actors", "codec"},
	"transport":        {"engine", "codec"},
	"transport/client": {"codec"},
	"bench":            {"transport/client", "codec"},
	"bench/mock":       {"codec"},
	"cluster":          {"actors", "codec"},
	"cmd":              {"actors", "bench", "bench/mock", "cluster", "codec", "engine", "engine/store", "transport", "transport/client", "transport/client/oauth"},

	"examples":                   {"engine", "transport"},
	"examples/gateway":           {"engine", "transport", "transport/client", "codec"},
	"internal/chaos":             {},
	"internal/conformanceclient": {"transport/client", "codec"},

	"engine/store":           {"engine"},
	"transport/auth":         {},
	"transport/client/oauth": {},
}

// owners says which folders may import a library. A library covers its subpackages. Of the standard library only what
// has an entry is restricted; any other module must have one.
var owners = map[string][]string{
	"github.com/HdrHistogram/hdrhistogram-go": {"bench"},
	"github.com/asynkron/protoactor-go":       {"actors", "cluster"},
	"github.com/go-jose/go-jose":              {"transport/auth"},
	"github.com/goccy/go-yaml":                {"bench/scenario"},
	"github.com/google/jsonschema-go":         {"engine"},
	"github.com/shirou/gopsutil":              {"bench"},
	"github.com/spf13/cobra":                  {"cmd/mcp-load"},
	"github.com/spf13/pflag":                  {"cmd/mcp-load"},
	"github.com/valyala/fastjson":             {"codec"},
	"github.com/yosida95/uritemplate":         {"engine"},
	"gonum.org/v1/gonum":                      {"bench"},
	"github.com/redis/go-redis":               {"engine/store/redis"},
	"go.etcd.io/bbolt":                        {"engine/store/bolt"},
	"golang.org/x/oauth2":                     {"transport/client/oauth"},
	"golang.org/x/sys":                        {"transport", "bench/mock", "cmd/mcp-load"},
	"golang.org/x/term":                       {"cmd/mcp-load"},
	"charm.land/bubbletea":                    {"cmd/mcp-load/tui"},
	"charm.land/lipgloss":                     {"cmd/mcp-load/tui"},
	"github.com/charmbracelet/x/ansi":         {"cmd/mcp-load/tui"},
	"github.com/prometheus/client_golang":     {"cmd/mcp-load"},
	"net/http":                                {"transport", "transport/client", "bench/mock", "bench/replica", "cmd/mcp-load", "examples"},
	"os/exec":                                 {"transport/client", "bench/replica"},
}

// covers reports whether name is root or lies below it.
func covers(root, name string) bool { return name == root || strings.HasPrefix(name, root+"/") }

// longest returns the key of m that covers name most closely.
func longest(m map[string][]string, name string) (string, bool) {
	for ; name != "."; name = path.Dir(name) {
		if _, ok := m[name]; ok {
			return name, true
		}
	}
	return "", false
}

// judgeImport returns what is wrong with an import of a file in folder, or "".
func judgeImport(folder, imported string) string {
	layer := "."
	if folder != "." {
		var ok bool
		if layer, ok = longest(layers, folder); !ok {
			return fmt.Sprintf("the folder %s has no entry in layers", folder)
		}
	}
	if covers(module, imported) {
		target := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		if targetLayer, ok := longest(layers, target); ok && (targetLayer == layer || slices.Contains(layers[layer], targetLayer)) {
			return ""
		}
		return fmt.Sprintf("%s may import %v of ours, not %s", layer, layers[layer], target)
	}
	library, owned := longest(owners, imported)
	if owned && !slices.ContainsFunc(owners[library], func(owner string) bool { return covers(owner, folder) }) {
		return fmt.Sprintf("%s belongs to %v", library, owners[library])
	}
	if root, _, _ := strings.Cut(imported, "/"); !owned && strings.Contains(root, ".") {
		return fmt.Sprintf("%s has no entry in owners", imported)
	}
	return ""
}

func TestJudgeImport(t *testing.T) {
	for _, c := range []struct {
		folder, imported, want string
	}{
		{"engine", module + "/codec", ""},
		{"cmd/mcp-load", module + "/transport/client/wire", ""},
		{"transport/client/wire", module + "/transport/client", ""},
		{"codec", module + "/actors", "codec may import [] of ours, not actors"},
		{"transport/client", module + "/engine", "transport/client may import [codec] of ours, not engine"},
		{"transport", module + "/transport/client", "transport may import [engine codec] of ours, not transport/client"},
		{"bench", module + "/transport", "bench may import [transport/client codec] of ours, not transport"},
		{"tools", "fmt", "the folder tools has no entry in layers"},
		{"codec", "github.com/valyala/fastjson", ""},
		{"bench", "github.com/shirou/gopsutil/v4/process", ""},
		{"engine", "github.com/valyala/fastjson/fastfloat", "github.com/valyala/fastjson belongs to [codec]"},
		{"transport/client/wire", "net/http", ""},
		{"bench", "net/http/httptrace", "net/http belongs to [transport transport/client bench/mock bench/replica cmd/mcp-load examples]"},
		{"engine", "net/url", ""},
		{"engine", "example.com/x", "example.com/x has no entry in owners"},
	} {
		if got := judgeImport(c.folder, c.imported); got != c.want {
			t.Errorf("judgeImport(%q, %q): got %q, want %q", c.folder, c.imported, got, c.want)
		}
	}
}

// TestImports holds every import of the module to the two tables.
func TestImports(t *testing.T) {
	for _, file := range goFiles(t) {
		if file.nested || strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.name, nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, spec := range parsed.Imports {
			if wrong := judgeImport(path.Dir(file.name), strings.Trim(spec.Path.Value, `"`)); wrong != "" {
				t.Errorf("%s imports %s: %s", file.name, spec.Path.Value, wrong)
			}
		}
	}
}

// TestDocumentation wants a package comment for every package and a comment on every exported name.
func TestDocumentation(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		folder := path.Dir(file.name)
		documented[folder] = documented[folder] || parsed.Doc != nil
		for _, name := range undocumented(parsed) {
			t.Errorf("%s: %s has no comment", file.name, name)
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("the package in %s has no package comment", folder)
		}
	}
}

// undocumented returns the exported names of a file that have no comment. A comment on a group covers its members.
func undocumented(file *ast.File) []string {
	var names []string
	add := func(name *ast.Ident, docs ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d != nil }) {
			names = append(names, name.Name)
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if receiverExported(d) {
				add(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					add(s.Name, d.Doc, s.Doc)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(name, d.Doc, s.Doc, s.Comment)
					}
				}
			}
		}
	}
	return names
}

func TestUndocumented(t *testing.T) {
	const source = `package p
type A int
// B has a comment.
type B int
func (A) M() {}
func (*hidden[T]) N() {}
func F() {}
// Limits of p.
const (
	C = 1
	D = 2
)
var E, f = 1, 2`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := undocumented(file), []string{"A", "M", "F", "E"}; !slices.Equal(got, want) {
		t.Errorf("undocumented: got %v, want %v", got, want)
	}
}

// receiverExported reports whether d is a function, or a method of an exported type.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		default:
			name, ok := receiver.(*ast.Ident)
			return ok && name.IsExported()
		}
	}
}

// forbidden matches what no file may hold: paths of the machines that this is made on and notes of unfinished work.
// Paths of imaginary machines (/home/somebody) are welcome in tests. The pieces are put together here so that this file
// does not match itself.
var forbidden = regexp.MustCompile(`(^|[\s"'=:(` + "`" + `])/(work|root)/[.a-z]` + "|" + `\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestForbiddenText(t *testing.T) {
	for text, want := range map[string]bool{
		"see /wo" + "rk/main":         true,
		"path=\"/ro" + "ot/.cache\"":  true,
		"path=\"/ro" + "ot/go\"":      true,
		"// TO" + "DO later":          true,
		"https://host/home/page":      false,
		"a todo list, /worker, /root": false,
	} {
		if got := forbidden.MatchString(text); got != want {
			t.Errorf("forbidden.MatchString(%q): got %v, want %v", text, got, want)
		}
	}
	for _, file := range files(t) {
		data, err := os.ReadFile(file.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(data) > 1<<20 || !utf8.Valid(data) {
			continue // no text
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if forbidden.Match(line) {
				t.Errorf("%s:%d: %s", file.name, i+1, bytes.TrimSpace(line))
			}
		}
	}
}

// TestFileLength keeps a file to one subject: it fails above 500 lines and mentions files above 350 in the log.
func TestFileLength(t *testing.T) {
	lengths := map[string]int{}
	for _, file := range goFiles(t) {
		data, err := os.ReadFile(file.name)
		if err != nil {
			t.Error(err)
			continue
		}
		lengths[file.name] = bytes.Count(data, []byte("\n"))
	}
	for _, name := range slices.Sorted(maps.Keys(lengths)) {
		switch n := lengths[name]; {
		case n > 500:
			t.Errorf("%s has %d lines, at most 500 are allowed and 350 are wanted", name, n)
		case n > 350:
			t.Logf("%s has %d lines, at most 350 are wanted", name, n)
		}
	}
}

// sourceFile is a file of the checkout.
type sourceFile struct {
	name   string // with slashes, relative to the root
	nested bool   // belongs to another module below the root
}

// files lists what belongs to the source: no repository data, no installed packages, no results of the last run, no
// fuzz corpora.
func files(t *testing.T) []sourceFile {
	t.Helper()
	var list []sourceFile
	nested := "" // the folder of the other module that the walk is in
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !covers(nested, name) {
			nested = ""
		}
		if entry.IsDir() {
			switch {
			case slices.Contains([]string{".git", "node_modules"}, entry.Name()), name == "results/latest", strings.HasSuffix(name, "testdata/fuzz"):
				return fs.SkipDir
			case name != "." && exists(name+"/go.mod"):
				nested = name
			}
			return nil
		}
		if entry.Type().IsRegular() && entry.Name() != ".git" { // of a work tree it is a file
			list = append(list, sourceFile{name: name, nested: nested != ""})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func goFiles(t *testing.T) []sourceFile {
	t.Helper()
	list := slices.DeleteFunc(files(t), func(file sourceFile) bool { return path.Ext(file.name) != ".go" })
	if len(list) == 0 {
		t.Fatal("found no Go files; is the working directory the root of the module?")
	}
	return list
}
