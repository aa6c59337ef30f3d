package engine

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"unicode/utf8"
)

func sealerOf(t testing.TB, keys ...string) *sealer {
	t.Helper()
	var raw [][]byte
	for _, key := range keys {
		raw = append(raw, []byte(strings.Repeat(key, 32)))
	}
	s, err := newSealer(raw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSeal changes every bit of a sealed text and of what it is bound to.
func TestSeal(t *testing.T) {
	s := sealerOf(t, "a")
	plain, bound := []byte("what is kept"), []byte("who asks for what")
	text := s.append([]byte("before:"), plain, bound)[len("before:"):]
	if got, err := s.open(text, bound); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("open: got %q, %v, want %q", got, err, plain)
	}
	refused := func(what string, s *sealer, text, bound []byte) {
		t.Helper()
		if got, err := s.open(text, bound); err == nil {
			t.Errorf("open %s: got %q, want an error", what, got)
		}
	}
	for i := range len(text) * 8 {
		flipped := bytes.Clone(text)
		flipped[i/8] ^= 1 << (i % 8)
		refused("with a flipped bit", s, flipped, bound)
	}
	for i := range len(bound) * 8 {
		flipped := bytes.Clone(bound)
		flipped[i/8] ^= 1 << (i % 8)
		refused("bound to something else", s, text, flipped)
	}
	for n := range text {
		refused("cut short", s, text[:n], bound)
	}
	refused("padded", s, append(bytes.Clone(text), '='), bound)
	refused("with a line end", s, append(bytes.Clone(text), '\n'), bound)
	refused("with another key", sealerOf(t, "b"), text, bound)
	refused("longer than any", s, bytes.Repeat([]byte("A"), maxSealed+1), bound)
	if _, err := sealerOf(t, "b", "c", "a").open(text, bound); err != nil {
		t.Errorf("open with the key among others: %v", err)
	}
	random, err := newSealer(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSealer(nil)
	if err != nil {
		t.Fatal(err)
	}
	refused("with another random key", other, random.append(nil, plain, bound), bound)
}

// FuzzUnseal opens arbitrary text. Nothing but what was sealed opens, and only
// under what it was bound to.
func FuzzUnseal(f *testing.F) {
	s := sealerOf(f, "a")
	f.Add([]byte(""), []byte("plain"), []byte("bound"))
	f.Add(s.append(nil, []byte("x"), []byte("other")), []byte("x"), []byte("bound"))
	f.Add([]byte(strings.Repeat("A", 100)), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, text, plain, bound []byte) {
		if got, err := s.open(text, append([]byte("fuzz"), bound...)); err == nil {
			t.Errorf("open(%q): got %q, which nobody sealed", text, got)
		}
		sealed := s.append(nil, plain, bound)
		if got, err := s.open(sealed, bound); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("open of the sealed %q: got %q, %v", plain, got, err)
		}
		if len(text) > 0 {
			mixed := bytes.Clone(sealed)
			for i, c := range text {
				mixed[i%len(mixed)] ^= c
			}
			if got, err := s.open(mixed, bound); err == nil && !bytes.Equal(mixed, sealed) {
				t.Errorf("open of a mangled text: got %q", got)
			}
		}
	})
}

// FuzzSentinel decodes arbitrary header values. Whatever is decoded is UTF-8 and
// encodes to the same value again; anything else stands for itself.
func FuzzSentinel(f *testing.F) {
	for _, value := range []string{
		"", "plain", "=?base64?", "=?base64?=", "=?base64??=", "=?base64?YQ==?=", "=?base64?YQ?=", "=?base64?YR==?=", "=?BASE64?YQ==?=",
		"=?base64?/w==?=", "=?base64?Y Q==?=", "=?base64?SGVsbG8sIOS4lueVjA==?=", "=?base64?YQ==?=x", "x=?base64?YQ==?=",
	} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if strings.ContainsAny(value, "\r\n") {
			return // no header value has them
		}
		got, ok := decodeSentinel(value)
		inside, isSentinel := strings.CutPrefix(value, "=?base64?")
		inside, closed := strings.CutSuffix(inside, "?=")
		switch isSentinel = isSentinel && closed; {
		case !isSentinel && (got != value || !ok):
			t.Errorf("decodeSentinel(%q): got %q, %t, want the value itself", value, got, ok)
		case isSentinel && ok && (!utf8.ValidString(got) || base64.StdEncoding.EncodeToString([]byte(got)) != inside):
			t.Errorf("decodeSentinel(%q): got %q, which encodes to another", value, got)
		case isSentinel && !ok:
			if raw, err := base64.StdEncoding.DecodeString(inside); err == nil && utf8.Valid(raw) && base64.StdEncoding.EncodeToString(raw) == inside {
				t.Errorf("decodeSentinel(%q): refused", value)
			}
		}
	})
}
