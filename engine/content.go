package engine

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/mcpengine/mcpengine/codec"
)

// Meta is a raw _meta object, nil for none.
type Meta = json.RawMessage

// Annotations tells a client how to use a piece of content.
type Annotations struct {
	Audience     []string // "user", "assistant"
	Priority     *float64 // 0 to 1
	LastModified string   // ISO 8601; sent from 2025-06-18 on
}

// Content is a block of what a tool or a prompt gives: Text, Image, Audio,
// ResourceLink or EmbeddedResource. What the session's revision does not know
// is sent as text that says the same.
type Content interface {
	appendTo(dst []byte, rev Revision) []byte
}

// Text is plain text.
type Text struct {
	Text        string
	Annotations *Annotations
	Meta        Meta
}

// Image is a picture. Data is encoded in base64 on the wire.
type Image struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        Meta
}

// Audio is a sound, known from 2025-03-26 on.
type Audio struct {
	Data        []byte
	MIMEType    string
	Annotations *Annotations
	Meta        Meta
}

// ResourceLink names a resource without its contents, known from 2025-06-18 on.
type ResourceLink struct {
	URI, Name, Title, Description, MIMEType string
	Size                                    *int64
	Icons                                   []Icon
	Annotations                             *Annotations
	Meta                                    Meta
}

// EmbeddedResource is a resource with its contents.
type EmbeddedResource struct {
	Resource    ResourceContents
	Annotations *Annotations
	Meta        Meta
}

// ResourceContents is what a resource holds: Blob where it is not nil, else Text.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte
	Meta     Meta
}

func (t Text) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"type":"text","text":`...)
	dst = codec.AppendString(dst, t.Text)
	return appendContentEnd(dst, rev, t.Annotations, t.Meta)
}

func (i Image) appendTo(dst []byte, rev Revision) []byte {
	return appendBinary(dst, "image", i.Data, i.MIMEType, rev, i.Annotations, i.Meta)
}

func (a Audio) appendTo(dst []byte, rev Revision) []byte {
	if rev < Rev20250326 {
		return Text{Text: "[audio of type " + a.MIMEType + ", " + strconv.Itoa(len(a.Data)) +
			" bytes, which this protocol revision cannot carry]", Annotations: a.Annotations}.appendTo(dst, rev)
	}
	return appendBinary(dst, "audio", a.Data, a.MIMEType, rev, a.Annotations, a.Meta)
}

func appendBinary(dst []byte, kind string, data []byte, mime string, rev Revision, an *Annotations, meta Meta) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, data)
	dst = append(dst, `","mimeType":`...)
	dst = codec.AppendString(dst, mime)
	return appendContentEnd(dst, rev, an, meta)
}

func (l ResourceLink) appendTo(dst []byte, rev Revision) []byte {
	if rev < Rev20250618 {
		text := "Resource: " + l.URI
		if l.Name != "" {
			text = "Resource " + l.Name + ": " + l.URI
		}
		if l.Description != "" {
			text += "\n" + l.Description
		}
		return Text{Text: text, Annotations: l.Annotations}.appendTo(dst, rev)
	}
	dst = append(dst, `{"type":"resource_link","uri":`...)
	dst = codec.AppendString(dst, l.URI)
	dst = append(dst, `,"name":`...)
	dst = codec.AppendString(dst, l.Name)
	dst = appendMember(dst, "title", l.Title)
	dst = appendMember(dst, "description", l.Description)
	dst = appendMember(dst, "mimeType", l.MIMEType)
	if l.Size != nil {
		dst = append(dst, `,"size":`...)
		dst = strconv.AppendInt(dst, *l.Size, 10)
	}
	if rev >= Rev20251125 {
		dst = appendIcons(dst, l.Icons)
	}
	return appendContentEnd(dst, rev, l.Annotations, l.Meta)
}

func (e EmbeddedResource) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"type":"resource","resource":`...)
	dst = e.Resource.appendTo(dst, rev)
	return appendContentEnd(dst, rev, e.Annotations, e.Meta)
}

func (r ResourceContents) appendTo(dst []byte, rev Revision) []byte {
	dst = append(dst, `{"uri":`...)
	dst = codec.AppendString(dst, r.URI)
	dst = appendMember(dst, "mimeType", r.MIMEType)
	if r.Blob != nil {
		dst = append(dst, `,"blob":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, r.Blob)
		dst = append(dst, '"')
	} else {
		dst = append(dst, `,"text":`...)
		dst = codec.AppendString(dst, r.Text)
	}
	return append(appendMeta(dst, rev, r.Meta), '}')
}

// appendContentEnd appends what all blocks share, and the closing brace.
func appendContentEnd(dst []byte, rev Revision, an *Annotations, meta Meta) []byte {
	dst = appendAnnotations(dst, rev, an)
	return append(appendMeta(dst, rev, meta), '}')
}

func appendAnnotations(dst []byte, rev Revision, an *Annotations) []byte {
	if an == nil {
		return dst
	}
	dst = append(dst, `,"annotations":{`...)
	start := len(dst)
	if len(an.Audience) > 0 {
		dst = append(dst, `"audience":[`...)
		for i, a := range an.Audience {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = codec.AppendString(dst, a)
		}
		dst = append(dst, ']')
	}
	if an.Priority != nil {
		dst = appendComma(dst, start)
		dst = append(dst, `"priority":`...)
		dst = codec.AppendFloat(dst, *an.Priority)
	}
	if an.LastModified != "" && rev >= Rev20250618 {
		dst = appendComma(dst, start)
		dst = append(dst, `"lastModified":`...)
		dst = codec.AppendString(dst, an.LastModified)
	}
	return append(dst, '}')
}

// appendMeta appends a _meta member, which blocks and definitions have from
// 2025-06-18 on.
func appendMeta(dst []byte, rev Revision, meta Meta) []byte {
	if len(meta) == 0 || rev < Rev20250618 {
		return dst
	}
	dst = append(dst, `,"_meta":`...)
	return append(dst, meta...)
}

// appendMember appends a string member after others, unless it is empty.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return codec.AppendString(dst, value)
}

// appendComma appends a comma unless nothing stands since start.
func appendComma(dst []byte, start int) []byte {
	if len(dst) > start {
		return append(dst, ',')
	}
	return dst
}

// Icon is a picture for a list entry, known from 2025-11-25 on.
type Icon struct {
	Src      string // an https: or data: URI
	MIMEType string
	Sizes    []string // "48x48", or "any"
	Theme    string   // "light" or "dark"
}

func appendIcons(dst []byte, icons []Icon) []byte {
	if len(icons) == 0 {
		return dst
	}
	dst = append(dst, `,"icons":[`...)
	for i, icon := range icons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"src":`...)
		dst = codec.AppendString(dst, icon.Src)
		dst = appendMember(dst, "mimeType", icon.MIMEType)
		if len(icon.Sizes) > 0 {
			dst = append(dst, `,"sizes":[`...)
			for j, size := range icon.Sizes {
				if j > 0 {
					dst = append(dst, ',')
				}
				dst = codec.AppendString(dst, size)
			}
			dst = append(dst, ']')
		}
		dst = append(appendMember(dst, "theme", icon.Theme), '}')
	}
	return append(dst, ']')
}
