package engine

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// sealer encrypts and authenticates what a client keeps for the server
// (AES-256-GCM). The first key seals, every key opens, so that keys can be
// rotated; whoever has the keys can open, so that the next request may reach
// another replica.
type sealer struct{ keys []cipher.AEAD }

// newSealer makes a sealer from keys of 32 bytes, or from one random key that
// dies with the process where there are none.
func newSealer(keys [][]byte) (*sealer, error) {
	if len(keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		keys = [][]byte{key}
	}
	s := &sealer{}
	for i, key := range keys {
		if len(key) != 32 {
			return nil, fmt.Errorf("engine: key %d has %d bytes, and not 32", i, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

var errUnsealed = errors.New("engine: not sealed here")

// maxSealed is the longest sealed text that is looked at.
const maxSealed = 256 << 10

// append appends the sealed form of plain, bound to bound: text of the URL-safe
// base64 alphabet.
func (s *sealer) append(dst, plain, bound []byte) []byte {
	return base64.RawURLEncoding.AppendEncode(dst, s.keys[0].Seal(nil, nil, plain, bound))
}

// open gives back what append was given, if the text is unchanged and bound to
// the same.
func (s *sealer) open(text, bound []byte) ([]byte, error) {
	if len(text) > maxSealed || bytes.ContainsAny(text, "\r\n") { // which package base64 passes over
		return nil, errUnsealed
	}
	sealed, err := base64.RawURLEncoding.Strict().AppendDecode(nil, text)
	if err != nil {
		return nil, errUnsealed
	}
	for _, key := range s.keys {
		if plain, err := key.Open(nil, nil, sealed, bound); err == nil {
			return plain, nil
		}
	}
	return nil, errUnsealed
}
