package engine

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// What may stand before a path in a text, and what a part of a path is made of.
// Neither fits the path of a URL that names a host.
const (
	pathStart = "(^|file://|[\\s\"'`(\\[{<=,;:|])"
	pathPart  = "[^\\s\"'`()\\[\\]{}<>=,;:|/\\\\]"
)

// What an error's text may hold that a model and its user must not see: paths
// of the machine (the last part is kept) and traces of the stack.
var (
	unixPath    = regexp.MustCompile(pathStart + `/(?:` + pathPart + `+/)+(` + pathPart + `*)`)
	windowsPath = regexp.MustCompile(pathStart + `[A-Za-z]:\\(?:[^\\\s"']+\\)*([^\\\s"':]*)`)
	stackTrace  = regexp.MustCompile(`(?s)goroutine \d+ \[.*`)
)

// redact gives the text of a tool's error for the peer. A tool that wants to
// say a path answers with a Result of its own.
func (e *Engine) redact(err error) string {
	text := err.Error()
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		text = strings.ReplaceAll(text, path.Path, "…")
	}
	if link := (*os.LinkError)(nil); errors.As(err, &link) {
		text = strings.NewReplacer(link.Old, "…", link.New, "…").Replace(text)
	}
	text = stackTrace.ReplaceAllString(text, "")
	text = unixPath.ReplaceAllString(text, "$1…/$2")
	text = windowsPath.ReplaceAllString(text, "$1…\\$2")
	if text = strings.TrimSpace(text); text == "" {
		return "the tool failed"
	}
	return text
}
