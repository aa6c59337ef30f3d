package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
)

func parseTree(t *testing.T, text string) *codec.Tree {
	t.Helper()
	tree, err := codec.ParseTree([]byte(text))
	if err != nil {
		t.Fatalf("ParseTree(%s): %v", text, err)
	}
	return tree
}

// describe gives all that the methods of a Value say about it.
func describe(v codec.Value) string {
	var parts []string
	add := func(what string, value any, ok bool) {
		if ok {
			parts = append(parts, fmt.Sprintf("%s=%v", what, value))
		}
	}
	text, isText := v.Text()
	n, isInt := v.Int()
	f, isFloat := v.Float()
	b, isBool := v.Bool()
	add("text", string(text), isText)
	add("int", n, isInt)
	add("float", f, isFloat)
	add("bool", b, isBool)
	add("null", "", v.IsNull())
	add("object", v.Len(), v.IsObject())
	add("array", v.Len(), v.IsArray())
	add("missing", v.Len(), !v.Exists())
	return strings.Join(parts, " ")
}

func TestTreeValues(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`"a\u0062\n"`, "text=ab\n"}, {`""`, "text="}, {`"\ud83d\ude00"`, "text=😀"}, {`"x\ud800y"`, "text=x\ufffdy"}, {`"\ud800\u0041"`, "text=\ufffdA"},
		{`"\udc00\ud83d\ude00"`, "text=\ufffd😀"}, {`"\\ud800"`, `text=\ud800`}, {`"\\\ud800"`, "text=\\\ufffd"}, {`"\ufffd"`, "text=\ufffd"},
		{`0`, "int=0 float=0"}, {`-0`, "int=0 float=-0"}, {`1.0`, "int=1 float=1"}, {`1.50e1`, "int=15 float=15"}, {`1e2`, "int=100 float=100"},
		{`1.5`, "float=1.5"}, {`1e-1`, "float=0.1"}, {`9223372036854775807`, "int=9223372036854775807 float=9.223372036854776e+18"},
		{`-9223372036854775808`, "int=-9223372036854775808 float=-9.223372036854776e+18"}, {`9223372036854775808`, "float=9.223372036854776e+18"},
		{`-9223372036854775809`, "float=-9.223372036854776e+18"}, {`1e999`, ""}, {`0e999999999999999999999`, "int=0 float=0"},
		{`1e-999999999999999999999`, "float=0"}, {`1e999999999999999999999`, ""}, {`10e-1`, "int=1 float=1"}, {`9007199254740993`, "int=9007199254740993 float=9.007199254740992e+15"},
		{strings.Repeat("9", 100) + "e-100", "float=1"}, {"1" + strings.Repeat("0", 100) + "e-100", "int=1 float=1"},
		{`true`, "bool=true"}, {`false`, "bool=false"}, {`null`, "null="}, {`{}`, "object=0"}, {`{"a":1,"a":2}`, "object=2"}, {` [1,[2]] `, "array=2"}, {`[]`, "array=0"},
	} {
		tree := parseTree(t, c.text)
		if got := describe(tree.Root()); got != c.want {
			t.Errorf("ParseTree(%s): got %q, want %q", c.text, got, c.want)
		}
		tree.Release()
	}
	if got, want := describe(codec.Value{}), "missing=0"; got != want {
		t.Errorf("the zero Value: got %q, want %q", got, want)
	}
}

func TestTreeGet(t *testing.T) {
	tree := parseTree(t, `{"a":{"b":[10,{"c":"x"}]},"s":"text","A":1,"\u0064":2,"d":3,"k\ud800":4,"0":5,"e\"":6}`)
	defer tree.Release()
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, "object=8"}, {[]string{"a"}, "object=1"}, {[]string{"a", "b"}, "array=2"}, {[]string{"s"}, "text=text"}, {[]string{"A"}, "int=1 float=1"},
		{[]string{"missing"}, "missing=0"}, {[]string{"a", "missing", "c"}, "missing=0"}, {[]string{"s", "x"}, "missing=0"},
		{[]string{"a", "b", "0"}, "missing=0"}, {[]string{"d"}, "int=2 float=2"}, {[]string{"k\ufffd"}, "int=4 float=4"}, {[]string{"0"}, "int=5 float=5"},
		{[]string{`e"`}, "int=6 float=6"}, {[]string{`\u0064`}, "missing=0"}, {[]string{""}, "missing=0"},
	} {
		for range 2 { // the first look-up unescapes the names
			if got := describe(tree.Get(c.path...)); got != c.want {
				t.Errorf("Get(%q): got %q, want %q", c.path, got, c.want)
			}
		}
	}
	list := tree.Get("a", "b")
	for i, want := range map[int]string{-1: "missing=0", 0: "int=10 float=10", 1: "object=1", 2: "missing=0"} {
		if got := describe(list.Index(i)); got != want {
			t.Errorf("Index(%d): got %q, want %q", i, got, want)
		}
	}
	if got, want := describe(tree.Get("s").Index(0)), "missing=0"; got != want {
		t.Errorf("Index of a string: got %q, want %q", got, want)
	}
}

func TestTreeEach(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"a":1,"\u0062":"x","a":null}`, "a:int=1 float=1|b:text=x|a:null=|"}, {`[1,[],"s"]`, ":int=1 float=1|:array=0|:text=s|"},
		{`{"a":1,"stop":2,"b":3}`, "a:int=1 float=1|stop:int=2 float=2|"}, {`["stop",1]`, ":text=stop|"}, {`{}`, ""}, {`1`, ""}, {`"x"`, ""},
	} {
		tree := parseTree(t, c.text)
		var got strings.Builder
		tree.Root().Each(func(name []byte, v codec.Value) bool {
			text, _ := v.Text()
			fmt.Fprintf(&got, "%s:%s|", name, describe(v))
			return string(name) != "stop" && string(text) != "stop"
		})
		if got.String() != c.want {
			t.Errorf("Each of %s: got %q, want %q", c.text, got.String(), c.want)
		}
		tree.Release()
	}
}

// TestTreeRefuses holds ParseTree to the rules that the library lacks.
func TestTreeRefuses(t *testing.T) {
	for _, text := range append(append([]string{"[\"\\n\n\"]", `[NaN]`, `[01]`, `{"a":Inf}`}, invalidTexts...), stricterTexts...) {
		tree, err := codec.ParseTree([]byte(text))
		if tree != nil || !errors.Is(err, codec.ErrParse) && !errors.Is(err, codec.ErrInvalidRequest) {
			t.Errorf("ParseTree(%.80q): got %v, %v, want an error", text, tree, err)
		}
	}
	for _, text := range validTexts {
		tree, err := codec.ParseTree([]byte(text))
		if err != nil {
			t.Errorf("ParseTree(%.80q): %v", text, err)
			continue
		}
		tree.Release()
	}
}

// TestTreeCopies makes sure that a Tree does not borrow from the text, and that
// the text is not changed.
func TestTreeCopies(t *testing.T) {
	data := []byte(`{"a":"\ud800\u0041"}`)
	original := bytes.Clone(data)
	tree, err := codec.ParseTree(data)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	if text, _ := tree.Get("a").Text(); string(text) != "\ufffdA" || !bytes.Equal(data, original) {
		t.Errorf("ParseTree(%s): got %q, and the text is now %s", original, text, data)
	}
	clear(data)
	if text, _ := tree.Get("a").Text(); string(text) != "\ufffdA" {
		t.Errorf("after the buffer was cleared: got %q, want %q", text, "\ufffdA")
	}
}

// TestTreeLarge parses a text that is too large for its Tree to be kept.
func TestTreeLarge(t *testing.T) {
	tree := parseTree(t, `["`+strings.Repeat("x", 1<<20)+`"]`)
	if text, _ := tree.Root().Index(0).Text(); len(text) != 1<<20 {
		t.Errorf("got %d bytes, want %d", len(text), 1<<20)
	}
	tree.Release()
}

// rebuild makes what encoding/json would have made of the same text; the first
// of several members with one name counts.
func rebuild(v codec.Value) any {
	if text, ok := v.Text(); ok {
		return string(text)
	}
	if f, ok := v.Float(); ok {
		return f
	}
	if b, ok := v.Bool(); ok {
		return b
	}
	switch {
	case v.IsArray():
		list := []any{}
		for i := range v.Len() {
			list = append(list, rebuild(v.Index(i)))
		}
		return list
	case v.IsObject():
		object := map[string]any{}
		v.Each(func(name []byte, member codec.Value) bool {
			if _, twice := object[string(name)]; !twice {
				object[string(name)] = rebuild(member)
			}
			return true
		})
		return object
	}
	return nil
}

// stdRebuild does the same with the standard library.
func stdRebuild(text []byte) any {
	if members, ok := stdMembers(text); ok {
		object := map[string]any{}
		for _, m := range members {
			if _, twice := object[m.name]; !twice {
				object[m.name] = stdRebuild([]byte(m.value))
			}
		}
		return object
	}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && list != nil {
		values := []any{}
		for _, element := range list {
			values = append(values, stdRebuild(element))
		}
		return values
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil
	}
	if number, ok := value.(json.Number); ok {
		f, err := strconv.ParseFloat(string(number), 64)
		if err != nil {
			return nil // out of range: the tree finds no float either
		}
		return f
	}
	return value
}

func FuzzTree(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		original := bytes.Clone(text)
		tree, err := codec.ParseTree(text)
		if want := stdValid(text); (err == nil) != want || !bytes.Equal(text, original) {
			t.Fatalf("ParseTree(%q): got %v, want success: %v", original, err, want)
		}
		if err != nil {
			return
		}
		defer tree.Release()
		if got, want := rebuild(tree.Root()), stdRebuild(text); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Fatalf("ParseTree(%q):\n got %#v\nwant %#v", text, got, want)
		}
		members, _ := stdMembers(text)
		for _, m := range members {
			first := codec.Member(text, m.name)
			if got, want := rebuild(tree.Get(m.name)), stdRebuild(first); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
				t.Fatalf("Get(%q) of %q: got %#v, want %#v", m.name, text, got, want)
			}
		}
	})
}
