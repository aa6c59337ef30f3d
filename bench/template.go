package bench

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcpengine/mcpengine/codec"
)

// template is text with places for the values of variables.
type template struct{ parts []part }

// part is text, or the place of a variable.
type part struct {
	text string
	slot int // of the variable; -1 for text
	form insertion
}

// insertion is how a value, which is JSON, is put into its place.
type insertion uint8

const (
	asText   insertion = iota // a string without its quotes and escapes, anything else as it is
	asInside                  // the same, escaped for the inside of a JSON string
	asJSON                    // as it is
)

// scope finds the slot of a variable.
type scope func(name string) (slot int, err error)

// fixed gives the text of a template that names no variable.
func (t *template) fixed() (string, bool) {
	for _, p := range t.parts {
		if p.slot >= 0 {
			return "", false
		}
	}
	return string(t.render(nil, nil)), true
}

// render appends the text with the values in their places.
func (t *template) render(dst []byte, values []json.RawMessage) []byte {
	for _, p := range t.parts {
		if p.slot < 0 {
			dst = append(dst, p.text...)
			continue
		}
		v := values[p.slot]
		text, isString := codec.String(v)
		switch {
		case p.form == asJSON || !isString && p.form == asText:
			dst = append(dst, v...)
		case p.form == asText:
			dst = append(dst, text...)
		case isString:
			dst = codec.AppendEscaped(dst, text)
		default:
			dst = codec.AppendEscaped(dst, v)
		}
	}
	return dst
}

func (t *template) text(s string) { t.parts = append(t.parts, part{text: s, slot: -1}) }

// add takes over the parts of a text, which is written as form says.
func (t *template) add(s string, form insertion, names scope) error {
	return eachPiece(s, func(text, name string) error {
		if name == "" {
			if form == asInside {
				text = string(codec.AppendEscaped(nil, text))
			}
			t.text(text)
			return nil
		}
		slot, err := names(name)
		if err != nil {
			return err
		}
		t.parts = append(t.parts, part{slot: slot, form: form})
		return nil
	})
}

// addJSON takes over a JSON value, whose strings are templates. A string that is nothing but one variable becomes its
// value, of whatever type it is.
func (t *template) addJSON(value []byte, names scope) (err error) {
	switch s, isString := codec.String(value); {
	case isString && onlyVariable(s):
		return t.add(s, asJSON, names)
	case isString:
		t.text(`"`)
		err = t.add(s, asInside, names)
		t.text(`"`)
	case firstByte(value) == '{':
		between := "{"
		codec.EachMember(value, func(name, v []byte) bool {
			t.text(between + string(codec.AppendString(nil, name)) + ":")
			between = ","
			err = t.addJSON(v, names)
			return err == nil
		})
		t.text(closing(between, "{", "}"))
	case firstByte(value) == '[':
		between := "["
		codec.EachElement(value, func(v []byte) bool {
			t.text(between)
			between = ","
			err = t.addJSON(v, names)
			return err == nil
		})
		t.text(closing(between, "[", "]"))
	default:
		t.text(string(value))
	}
	return err
}

// closing ends an object or an array, which has not been begun where it is empty.
func closing(between, begin, end string) string {
	if between == begin {
		return begin + end
	}
	return end
}

// onlyVariable reports whether s is one ${NAME} and nothing else.
func onlyVariable(s string) bool {
	return strings.HasPrefix(s, "${") && strings.IndexByte(s, '}') == len(s)-1
}

// eachPiece cuts a template into text and variables.
func eachPiece(s string, f func(text, name string) error) error {
	for s != "" {
		i := strings.Index(s, "${")
		if i < 0 {
			return f(s, "")
		}
		if i > 0 && s[i-1] == '$' { // $${ is ${ itself
			if err := f(s[:i-1]+"${", ""); err != nil {
				return err
			}
			s = s[i+2:]
			continue
		}
		name, rest, closed := strings.Cut(s[i+2:], "}")
		if !closed || name == "" {
			return fmt.Errorf("%q does not name a variable: write ${NAME}, or $${ for the characters themselves",
				clip([]byte(s[i:])))
		}
		if i > 0 {
			if err := f(s[:i], ""); err != nil {
				return err
			}
		}
		if err := f("", name); err != nil {
			return err
		}
		s = rest
	}
	return nil
}

// TemplateNames lists the variables that a template names, in their order.
func TemplateNames(s string) (names []string, err error) {
	err = eachPiece(s, func(_, name string) error {
		if name != "" {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
