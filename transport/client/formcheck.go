package client

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mcpengine/mcpengine/codec"
)

// check holds a value to the schema of its property.
func (p *field) check(value []byte) error {
	switch p.kind {
	case kindNumber, kindInteger:
		return p.checkNumber(value)
	case kindBoolean:
		if s := string(value); s != "true" && s != "false" {
			return errors.New("not a boolean")
		}
		return nil
	case kindMulti:
		return p.checkMulti(value)
	}
	s, ok := codec.String(value)
	switch {
	case !ok:
		return errors.New("not a string")
	case p.kind == kindSingle && !p.options.has(s):
		return errors.New("not one of the choices")
	case p.kind == kindSingle:
		return nil
	}
	return p.checkText(s)
}

// checkOther holds a value to what content may have in any case.
func checkOther(value []byte) error {
	_, isText := codec.String(value)
	_, isTexts := texts(value)
	s := string(value)
	if isText || isTexts || isNumber(value) || s == "true" || s == "false" {
		return nil
	}
	return errors.New("not a string, number, boolean or array of strings")
}

// isNumber tells a number from the other values of valid JSON.
func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

func (p *field) checkNumber(value []byte) error {
	if !isNumber(value) {
		return errors.New("not a number")
	}
	if p.kind == kindInteger && !codec.IsIntegral(value) {
		return errors.New("not an integer")
	}
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return errors.New("out of range")
	}
	if least, ok := codec.Number(p.schema, "minimum"); ok && n < least {
		return fmt.Errorf("less than %v", least)
	}
	if most, ok := codec.Number(p.schema, "maximum"); ok && n > most {
		return fmt.Errorf("more than %v", most)
	}
	return nil
}

func (p *field) checkMulti(value []byte) error {
	chosen, ok := texts(value)
	if !ok {
		return errors.New("not an array of strings")
	}
	if least, ok := codec.Int(p.schema, "minItems"); ok && int64(len(chosen)) < least {
		return fmt.Errorf("fewer than %d choices", least)
	}
	if most, ok := codec.Int(p.schema, "maxItems"); ok && int64(len(chosen)) > most {
		return fmt.Errorf("more than %d choices", most)
	}
	for _, s := range chosen {
		if !p.options.has(s) {
			return errors.New("not one of the choices")
		}
	}
	return nil
}

func (p *field) checkText(s string) error {
	n := int64(utf8.RuneCountInString(s))
	if least, ok := codec.Int(p.schema, "minLength"); ok && n < least {
		return fmt.Errorf("shorter than %d characters", least)
	}
	if most, ok := codec.Int(p.schema, "maxLength"); ok && n > most {
		return fmt.Errorf("longer than %d characters", most)
	}
	if pattern, ok := codec.String(codec.Member(p.schema, "pattern")); ok {
		// The pattern is of ECMA-262. One that Go does not know is the server's to
		// check.
		if re, err := regexp.Compile(pattern); err == nil && !re.MatchString(s) {
			return errors.New("does not match the pattern")
		}
	}
	return checkFormat(codec.Text(p.schema, "format"), s)
}

// checkFormat knows the four formats of the protocol.
func checkFormat(format, s string) error {
	ok := true
	switch format {
	case "email":
		a, err := mail.ParseAddress(s)
		ok = err == nil && a.Address == s
	case "uri":
		u, err := url.Parse(s)
		ok = err == nil && u.IsAbs()
	case "date":
		_, err := time.Parse(time.DateOnly, s)
		ok = err == nil
	case "date-time":
		_, err := time.Parse(time.RFC3339, s)
		ok = err == nil
	}
	if !ok {
		return fmt.Errorf("not of format %s", format)
	}
	return nil
}
