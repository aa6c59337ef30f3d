package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// sealingEngine is as much of an engine as session ids need.
func sealingEngine(tb testing.TB, clock func() time.Time, keys ...byte) *Engine {
	tb.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, bytes.Repeat([]byte{k}, 32))
	}
	ids, err := newSealer(all)
	if err != nil {
		tb.Fatal(err)
	}
	return &Engine{ids: ids, options: Options{SessionLifetime: time.Hour, Clock: clock}}
}

func sample() *negotiated {
	return &negotiated{
		rev: Rev20250618, principal: "ann", declared: capTools | capPrompts | capTasks,
		clientInfo:   []byte(`{"name":"c","version":"1"}`),
		capabilities: []byte(`{"sampling":{},"elicitation":{"form":{}}}`),
	}
}

// TestSealedID checks that an id holds what it was made of, in visible ASCII.
func TestSealedID(t *testing.T) {
	e := sealingEngine(t, nil, 1)
	made, key := e.newSealedID(sample())
	_, other := e.newSealedID(sample())
	if key == other {
		t.Error("two sessions have the same id")
	}
	for _, c := range key {
		if c <= ' ' || c > '~' {
			t.Fatalf("the id holds %q", c)
		}
	}
	if len(key) < minSessionID || strings.Contains(key, "ann") {
		t.Errorf("the id: got %q", key)
	}
	got := e.openID(key, "ann")
	if got == nil {
		t.Fatal("openID: got nil")
	}
	if !reflect.DeepEqual(got, made) {
		t.Errorf("openID: got %+v, want %+v", got, made)
	}
}

// TestOpenIDRefuses is the table of ids that are not ours, or not now, or not
// for everybody.
func TestOpenIDRefuses(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	e := sealingEngine(t, clock, 1)
	_, key := e.newSealedID(sample())
	foreign := sealingEngine(t, clock, 2)
	_, foreignKey := foreign.newSealedID(sample())
	state := string(e.ids.append(nil, bytes.Repeat([]byte{1}, 200), nil)) // sealed for something else
	garbage := string(e.ids.append(nil, bytes.Repeat([]byte{9}, 200), sealedBinding))
	for _, c := range []struct {
		name, key, principal string
		later                time.Duration
		want                 bool
	}{
		{name: "as made", key: key, principal: "ann", want: true},
		{name: "just before its end", key: key, principal: "ann", later: time.Hour - time.Millisecond, want: true},
		{name: "at its end", key: key, principal: "ann", later: time.Hour},
		{name: "clock jumped back", key: key, principal: "ann", later: -24 * time.Hour, want: true},
		{name: "another principal", key: key, principal: "bob"},
		{name: "nobody", key: key},
		{name: "another key", key: foreignKey, principal: "ann"},
		{name: "another text of ours", key: state, principal: "ann"},
		{name: "another layout", key: garbage, principal: "ann"},
		{name: "empty", principal: "ann"},
		{name: "a UUID", key: "11111111-2222-4333-8444-555555555555", principal: "ann"},
		{name: "too long", key: strings.Repeat("A", maxSessionID+1), principal: "ann"},
		{name: "long", key: strings.Repeat("A", maxSessionID), principal: "ann"},
		{name: "cut off", key: key[:len(key)-1], principal: "ann"},
		{name: "appended to", key: key + "A", principal: "ann"},
		{name: "padded", key: key + "=", principal: "ann"},
		{name: "with a line break", key: key[:100] + "\n" + key[100:], principal: "ann"},
		{name: "standard alphabet", key: key[:100] + "+" + key[101:], principal: "ann"},
	} {
		now = now.Add(c.later)
		if got := e.openID(c.key, c.principal) != nil; got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
		now = now.Add(-c.later)
	}
}

// TestOpenIDEveryBit flips each bit of an id, one at a time.
func TestOpenIDEveryBit(t *testing.T) {
	e := sealingEngine(t, nil, 1)
	_, key := e.newSealedID(sample())
	for i := range len(key) {
		for bit := range 8 {
			forged := []byte(key)
			forged[i] ^= 1 << bit
			if e.openID(string(forged), "ann") != nil {
				t.Fatalf("byte %d, bit %d: the id was taken", i, bit)
			}
		}
	}
}

// TestKeyRotation checks that the first key seals and all open.
func TestKeyRotation(t *testing.T) {
	before, between, after := sealingEngine(t, nil, 1), sealingEngine(t, nil, 2, 1), sealingEngine(t, nil, 2)
	_, old := before.newSealedID(sample())
	_, fresh := between.newSealedID(sample())
	for _, c := range []struct {
		name string
		e    *Engine
		key  string
		want bool
	}{
		{"old id, old key", before, old, true},
		{"old id, both keys", between, old, true},
		{"old id, new key", after, old, false},
		{"new id, old key", before, fresh, false},
		{"new id, new key", after, fresh, true},
	} {
		if got := c.e.openID(c.key, "ann") != nil; got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
}

// TestSealable checks that what is cut down says the same to the engine, and
// that no client makes ids too long.
func TestSealable(t *testing.T) {
	long := `"` + strings.Repeat("x", 5000) + `"`
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"capability-%d":{"a":{"b":{"c":{"d":{}}}}},`, i)
	}
	for _, c := range []struct{ name, capabilities, info string }{
		{"as it is", `{"sampling":{}}`, `{"name":"c","version":"1"}`},
		{"long info", `{"sampling":{},"roots":{"listChanged":true}}`, `{"name":"c","version":"1","title":` + long + `}`},
		{"long name", `{"sampling":{}}`, `{"name":` + long + `,"version":` + long + `}`},
		{"long values", `{"sampling":{"tools":{}},"experimental":{"x":` + long + `},` +
			`"tasks":{"requests":{"sampling":{"createMessage":{}}}}}`, `{"name":"c","version":"1"}`},
		{"many names", `{"sampling":{},` + many.String() + `"z":{}}`, `{"name":"c","version":"1"}`},
		{"long names", `{"sampling":{},` + long + `:{}}`, `{"name":"c","version":"1"}`},
		{"no members", ``, ``},
	} {
		n := sample()
		n.capabilities, n.clientInfo = []byte(c.capabilities), []byte(c.info)
		e := sealingEngine(t, nil, 1)
		_, key := e.newSealedID(n.sealable())
		id := e.openID(key, n.principal)
		if id == nil {
			t.Errorf("%s: an id of %d bytes is not opened", c.name, len(key))
			continue
		}
		for _, raw := range [][]byte{id.capabilities, id.clientInfo} {
			if len(raw) > 0 && !json.Valid(raw) {
				t.Errorf("%s: not JSON: %s", c.name, raw)
			}
		}
		for _, path := range [][]string{
			{"sampling"}, {"sampling", "tools"}, {"roots"}, {"roots", "listChanged"},
			{"tasks", "requests", "sampling", "createMessage"},
		} {
			want := codec.Member([]byte(c.capabilities), path...) != nil
			if got := codec.Member(id.capabilities, path...) != nil; got != want {
				t.Errorf("%s: %v: got %t, want %t", c.name, path, got, want)
			}
		}
	}
}

// FuzzSessionID checks that no text but those that were made is an id, and that
// whatever parses is what it is made of.
func FuzzSessionID(f *testing.F) {
	e := sealingEngine(f, nil, 1)
	var err error
	if e.ids, err = newSealer(nil); err != nil { // each process of the fuzzer has a key of its own
		f.Fatal(err)
	}
	made, key := e.newSealedID(sample())
	f.Add(key, made.appendTo(nil))
	f.Add("", []byte{sealedVersion})
	f.Fuzz(func(t *testing.T, text string, plain []byte) {
		if text != key && e.openID(text, "ann") != nil {
			t.Errorf("openID(%q) took an id that was not made", text)
		}
		var id sealedID
		if id.parse(plain) != nil {
			return
		}
		var again sealedID
		if err := again.parse(id.appendTo(nil)); err != nil {
			t.Fatalf("parse(appendTo(parse(%q))): %v", plain, err)
		}
		if !reflect.DeepEqual(id, again) {
			t.Errorf("parse(%q): got %+v and then %+v", plain, id, again)
		}
	})
}

// TestSealedLayout holds the plain form to what was in ids before: a change of
// it needs another sealedVersion.
func TestSealedLayout(t *testing.T) {
	id := &sealedID{created: 1, expires: 2, principal: sha256.Sum256(nil), negotiated: *sample()}
	got := fmt.Sprintf("%x", sha256.Sum256(id.appendTo(nil)))
	const want = "63d75fe22cc72865fad451bbaa4692ac6d6621c63a789b85661eb5a0fedbfcaa"
	if got != want {
		t.Errorf("digest of the plain form: got %s, want %s", got, want)
	}
	for i, bit := range []capability{capTools, capResources, capPrompts, capCompletions, capTasks} {
		if bit != 1<<i {
			t.Errorf("capability %d: got %d, want %d", i, bit, 1<<i)
		}
	}
}
