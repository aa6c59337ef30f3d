package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/yosida95/uritemplate/v3"
)

// Resource describes a resource of a fixed URI.
type Resource struct {
	URI         string
	Name        string
	Title       string // from 2025-06-18 on
	Description string
	MIMEType    string
	Size        *int64 // bytes; from 2024-11-05 on
	Annotations *Annotations
	Icons       []Icon // from 2025-11-25 on
	Meta        Meta
	// Cache tells clients of 2026-07-28 how long they may keep the contents.
	Cache Cache
}

// ResourceTemplate describes the resources whose URIs match an RFC 6570
// template.
type ResourceTemplate struct {
	URITemplate string
	Name        string
	Title       string
	Description string
	MIMEType    string
	Annotations *Annotations
	Icons       []Icon
	Meta        Meta
	// Cache tells clients of 2026-07-28 how long they may keep the contents.
	Cache Cache
	// Complete completes the variables' values, nil where that cannot be done.
	Complete CompleteFunc
}

// ResourceHandler reads a resource. A URI or a MIME type that is empty in what
// it gives is filled in from the request and the definition.
type ResourceHandler func(ctx context.Context, c *Call, uri string) ([]ResourceContents, error)

// TemplateHandler reads a resource that matches a template. vars are the values
// of the template's variables.
type TemplateHandler func(ctx context.Context, c *Call, uri string, vars map[string]string) ([]ResourceContents, error)

// ErrResourceNotFound is for a handler to say that there is no such resource.
// The peer gets the code that its revision has for that: -32002, or -32602 from
// 2026-07-28 on.
var ErrResourceNotFound = errors.New("engine: resource not found")

// AddResource registers a resource, or replaces the one of its URI.
func (e *Engine) AddResource(r Resource, h ResourceHandler) error {
	if r.URI == "" || r.Name == "" {
		return e.refuse(r.URI, errors.New("a resource has a URI and a name"))
	}
	item := &entry{
		name:   r.URI,
		append: func(dst []byte, rev Revision) []byte { return r.appendTo(dst, rev) },
		bare: func(ctx context.Context, c *Call) error {
			contents, err := h(ctx, c, r.URI)
			return c.setContents(contents, err, r.URI, r.MIMEType, r.Cache)
		},
	}
	e.change(KindResource, r.URI, func(c *catalog) bool { return c.put(&c.resources, item) })
	return nil
}

// RemoveResource takes a resource out. It reports whether there was one.
func (e *Engine) RemoveResource(uri string) bool {
	return e.change(KindResource, uri, func(c *catalog) bool { return c.resources.remove(uri) })
}

// AddResourceTemplate registers a template, or replaces the same one. Of
// several that match a URI the first registered one serves it.
func (e *Engine) AddResourceTemplate(t ResourceTemplate, h TemplateHandler) error {
	parsed, err := uritemplate.New(t.URITemplate)
	if err != nil {
		return e.refuse(t.URITemplate, err)
	}
	if t.Name == "" {
		return e.refuse(t.URITemplate, errors.New("a resource template has a name"))
	}
	matcher := &templateMatcher{parsed}
	item := &entry{
		name:     t.URITemplate,
		template: matcher,
		complete: t.Complete,
		append:   func(dst []byte, rev Revision) []byte { return t.appendTo(dst, rev) },
		bare: func(ctx context.Context, c *Call) error {
			contents, err := h(ctx, c, c.name, matcher.vars(c.name))
			return c.setContents(contents, err, c.name, t.MIMEType, t.Cache)
		},
	}
	e.change(KindTemplate, t.URITemplate, func(c *catalog) bool { return c.put(&c.templates, item) })
	return nil
}

// templateMatcher finds out whether a URI is of a template.
type templateMatcher struct{ t *uritemplate.Template }

func (m *templateMatcher) matches(uri string) bool { return m.t.Match(uri) != nil }

func (m *templateMatcher) vars(uri string) map[string]string {
	vars := make(map[string]string)
	for name, value := range m.t.Match(uri) {
		vars[name] = value.String()
	}
	return vars
}

// findResource finds who serves a URI, or nil.
func (c *catalog) findResource(uri []byte) *entry {
	if e := c.resources.byName[string(uri)]; e != nil {
		return e
	}
	for _, e := range c.templates.entries {
		if e.template.matches(string(uri)) {
			return e
		}
	}
	return nil
}

// setContents renders the result of resources/read.
func (c *Call) setContents(contents []ResourceContents, err error, uri, mime string, cache Cache) error {
	if errors.Is(err, ErrResourceNotFound) {
		return notFound(c.rev, []byte(uri))
	}
	if err != nil {
		return err
	}
	dst := append(c.out[:c.result], `{"contents":[`...)
	for i, r := range contents {
		if i > 0 {
			dst = append(dst, ',')
		}
		if r.URI == "" {
			r.URI = uri
		}
		if r.MIMEType == "" {
			r.MIMEType = mime
		}
		dst = r.appendTo(dst, c.rev)
	}
	dst = append(dst, ']')
	if c.rev.IsModern() {
		cache.Public = cache.Public && c.engine.options.Visible == nil
		dst = cache.appendTo(dst)
	}
	c.out = append(dst, '}')
	return nil
}

// notFound is the error for a URI that nobody serves.
func notFound(rev Revision, uri []byte) *codec.Error {
	code := codec.CodeResourceNotFound
	if rev.IsModern() {
		code = codec.CodeInvalidParams
	}
	data := codec.AppendString([]byte(`{"uri":`), uri)
	return &codec.Error{Code: code, Message: "Resource not found", Data: append(data, '}')}
}

func (r *Resource) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"uri":`...)
	dst = codec.AppendString(dst, r.URI)
	dst = appendDescription(dst, rev, r.Name, r.Title, r.Description, r.MIMEType)
	if r.Size != nil {
		dst = append(dst, `,"size":`...)
		dst = strconv.AppendInt(dst, *r.Size, 10)
	}
	return appendDefinitionEnd(dst, rev, r.Annotations, r.Icons, r.Meta)
}

func (t *ResourceTemplate) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"uriTemplate":`...)
	dst = codec.AppendString(dst, t.URITemplate)
	dst = appendDescription(dst, rev, t.Name, t.Title, t.Description, t.MIMEType)
	return appendDefinitionEnd(dst, rev, t.Annotations, t.Icons, t.Meta)
}

func appendDescription(dst []byte, rev Revision, name, title, description, mime string) []byte {
	dst = append(dst, `,"name":`...)
	dst = codec.AppendString(dst, name)
	if rev >= Rev20250618 {
		dst = appendMember(dst, "title", title)
	}
	dst = appendMember(dst, "description", description)
	return appendMember(dst, "mimeType", mime)
}

func appendDefinitionEnd(dst []byte, rev Revision, an *Annotations, icons []Icon, meta Meta) []byte {
	dst = appendAnnotations(dst, rev, an)
	if rev >= Rev20251125 {
		dst = appendIcons(dst, icons)
	}
	return append(appendMeta(dst, rev, meta), '}')
}

// ResourceUpdated tells everybody who subscribed to a URI that it changed.
// Updates that come in quick succession coalesce.
func (e *Engine) ResourceUpdated(uri string) {
	frame := make([]byte, 0, len(updatedHead)+len(uri)+len(`"uri":""}}`))
	frame = append(frame, updatedHead+`"uri":`...)
	frame = codec.AppendString(frame, uri)
	e.system.Publish(topicResource+uri, append(frame, '}', '}'))
}

// updatedHead begins the notification of an update, up to its first param.
const updatedHead = `{"jsonrpc":"2.0","method":"` + codec.NotifyResourceUpdated + `","params":{`

// subscribe begins a legacy subscription of a session.
func (s *Session) subscribe(uri []byte) error {
	if s.view().findsResource(s.engine.catalog.Load(), uri) == nil {
		return notFound(s.Revision(), uri)
	}
	return s.actor.Subscribe(topicResource+string(uri), func(event *actors.Event) {
		if s.view().hears(event.Topic[len(topicResource):]) {
			s.notify(event.Frame)
		}
	})
}

// errNoURI answers a request that needs a uri.
var errNoURI = codec.NewError(codec.CodeInvalidParams, fmt.Sprintf("Invalid params: %q must be a string", "uri"))
