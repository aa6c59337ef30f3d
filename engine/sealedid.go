package engine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// A sealed session id holds what initialize settled, encrypted and
// authenticated, so that any process that has the key can go on with the
// session: after a restart, after an eviction, behind a balancer that is not
// sticky. It is of the visible ASCII characters that Streamable HTTP asks for.

// sealedVersion begins what is sealed. A change of the layout, of the order of
// the capability bits or of the revisions' numbers makes another.
const sealedVersion = 1

// Bounds of a sealed id. maxSealedClient is how many bytes of the client's
// capabilities and description go in as they are.
const (
	maxSealedClient = 4 << 10
	minSessionID    = 120
	maxSessionID    = 6 << 10
)

// sealedBinding keeps session ids and other sealed texts apart.
var sealedBinding = []byte("mcp session id")

// sealedID is what the id of a session holds.
type sealedID struct {
	identity  [16]byte // random: what stores know the session by
	created   int64    // milliseconds since 1970
	expires   int64    // milliseconds since 1970
	principal [sha256.Size]byte
	negotiated
}

// name is the identity as stores have it.
func (id *sealedID) name() string { return hex.EncodeToString(id.identity[:]) }

// newSealedID makes the id of a new session.
func (e *Engine) newSealedID(n *negotiated) (*sealedID, string) {
	now := e.now()
	id := &sealedID{
		created: now.UnixMilli(), expires: now.Add(e.options.SessionLifetime).UnixMilli(),
		principal: sha256.Sum256([]byte(n.principal)), negotiated: *n,
	}
	_, _ = rand.Read(id.identity[:]) // never fails
	return id, string(e.ids.append(nil, id.appendTo(nil), sealedBinding))
}

// appendTo appends the plain form.
func (id *sealedID) appendTo(dst []byte) []byte {
	dst = append(dst, sealedVersion, byte(id.rev))
	dst = append(dst, id.identity[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(id.created))
	dst = binary.BigEndian.AppendUint64(dst, uint64(id.expires))
	dst = append(dst, id.principal[:]...)
	dst = binary.AppendUvarint(dst, uint64(id.declared))
	for _, field := range [][]byte{id.capabilities, id.clientInfo} {
		dst = binary.AppendUvarint(dst, uint64(len(field)))
		dst = append(dst, field...)
	}
	return dst
}

var errSealedID = errors.New("engine: not the plain form of a session id")

// parse reads the plain form. It copies nothing.
func (id *sealedID) parse(b []byte) error {
	const fixed = 2 + 16 + 8 + 8 + sha256.Size
	if len(b) < fixed || b[0] != sealedVersion {
		return errSealedID
	}
	id.rev = Revision(b[1])
	copy(id.identity[:], b[2:])
	id.created = int64(binary.BigEndian.Uint64(b[18:]))
	id.expires = int64(binary.BigEndian.Uint64(b[26:]))
	copy(id.principal[:], b[34:])
	b = b[fixed:]
	declared, n := binary.Uvarint(b)
	if n <= 0 || id.rev < Rev20241105 || id.rev > newestLegacy {
		return errSealedID
	}
	b, id.declared = b[n:], capability(declared)
	for _, field := range []*[]byte{&id.capabilities, &id.clientInfo} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return errSealedID
		}
		if size > 0 {
			*field = b[n : n+int(size) : n+int(size)]
		}
		b = b[n+int(size):]
	}
	if len(b) > 0 {
		return errSealedID
	}
	return nil
}

// openID gives what a key holds, or nil where it is not an id of ours whose time
// is not over and which belongs to the principal. Nothing of it lasts, and what
// cannot be an id costs next to nothing.
func (e *Engine) openID(key, principal string) *sealedID {
	if e.ids == nil || len(key) < minSessionID || len(key) > maxSessionID || !isBase64URL(key) {
		return nil
	}
	plain, err := e.ids.open([]byte(key), sealedBinding)
	if err != nil {
		return nil
	}
	id := new(sealedID)
	if id.parse(plain) != nil || id.expires <= e.now().UnixMilli() {
		return nil
	}
	if id.principal != sha256.Sum256([]byte(principal)) {
		return nil
	}
	id.negotiated.principal = principal
	return id
}

// isBase64URL reports whether text is of the alphabet of sealed ids.
func isBase64URL(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// sealable gives what of a client's description goes into an id. What is too
// long is cut down to what the engine looks at: the names of the capabilities
// and of what they consist of, the client's name and version.
func (n *negotiated) sealable() *negotiated {
	if len(n.capabilities)+len(n.clientInfo) <= maxSealedClient {
		return n
	}
	cut := *n
	cut.capabilities = appendOutline(nil, n.capabilities, maxSealedDepth)
	if len(cut.capabilities) > maxSealedClient/2 {
		cut.capabilities = appendOutline(nil, n.capabilities, 1)
	}
	if len(cut.capabilities) > maxSealedClient/2 {
		cut.capabilities = []byte("{}")
	}
	cut.clientInfo = []byte(`{"name":`)
	cut.clientInfo = codec.AppendString(cut.clientInfo, clip([]byte(codec.Text(n.clientInfo, "name"))))
	cut.clientInfo = append(cut.clientInfo, `,"version":`...)
	cut.clientInfo = codec.AppendString(cut.clientInfo, clip([]byte(codec.Text(n.clientInfo, "version"))))
	cut.clientInfo = append(cut.clientInfo, '}')
	return &cut
}

// maxSealedDepth is how deep capabilities are nested that the engine looks at:
// tasks.requests.sampling.createMessage.
const maxSealedDepth = 4

// maxSealedNames is how many names of one object are kept.
const maxSealedNames = 64

// appendOutline appends an object without the values that are no objects, to a
// depth.
func appendOutline(dst, object []byte, depth int) []byte {
	dst = append(dst, '{')
	start, names := len(dst), 0
	codec.EachMember(object, func(name, value []byte) bool {
		if len(name) > 64 || names == maxSealedNames {
			return names < maxSealedNames
		}
		names++
		dst = appendComma(dst, start)
		dst = append(codec.AppendString(dst, name), ':')
		switch {
		case codec.IsObject(value) && depth > 1:
			dst = appendOutline(dst, value, depth-1)
		case codec.IsObject(value):
			dst = append(dst, `{}`...)
		default:
			dst = append(dst, `true`...)
		}
		return true
	})
	return append(dst, '}')
}

// now gives the time by the embedder's clock.
func (e *Engine) now() time.Time {
	if e.options.Clock != nil {
		return e.options.Clock()
	}
	return time.Now()
}

// SealsSessions reports whether ids of sessions are sealed (Options.SessionKeys).
func (e *Engine) SealsSessions() bool { return e.ids != nil }
