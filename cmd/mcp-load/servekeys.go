package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/engine/store/bolt"
	"github.com/mcpengine/mcpengine/engine/store/redis"
	"github.com/mcpengine/mcpengine/transport"
)

// maxKeys is how many keys a file may hold: each is tried on every id that is
// not known.
const maxKeys = 16

// readKeys reads a file of keys: one a line, 32 bytes in base64 of any alphabet,
// with or without padding. Empty lines and those that begin with # are skipped.
// An empty path gives none. The error repeats nothing of the file.
func readKeys(flag, path string) ([][]byte, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError("%s: %v", flag, err)
	}
	var keys [][]byte
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(line, "="))
		key, err := base64.RawStdEncoding.Strict().DecodeString(line)
		if err != nil || len(key) != 32 {
			return nil, usageError("%s %s: line %d is not 32 bytes in base64 (openssl rand -base64 32 makes one)", flag, path, n)
		}
		keys = append(keys, key)
	}
	switch {
	case lines.Err() != nil:
		return nil, usageError("%s %s: %v", flag, path, lines.Err())
	case len(keys) == 0:
		return nil, usageError("%s %s: there is no key in it", flag, path)
	case len(keys) > maxKeys:
		return nil, usageError("%s %s: more than %d keys", flag, path, maxKeys)
	}
	return keys, nil
}

// closableStore is a store that holds something open.
type closableStore interface {
	engine.SessionStore
	engine.EventLog
	io.Closer
}

// checkStore refuses a --store that cannot be meant.
func (f *serveFlags) checkStore() error {
	kind, rest, _ := strings.Cut(f.store, ":")
	switch {
	case f.store == "" || f.store == "memory":
		return nil
	case f.sessionKeys == "":
		return usageError("--store %s: give --session-keys too, without which sessions end with the process", kind)
	case kind == "file" && rest != "", (kind == "redis" || kind == "rediss") && rest != "":
		return nil
	}
	return usageError("--store %q: use memory, file:PATH or redis://HOST:PORT", kind)
}

// openStore opens the store of --store, or gives nil for the one in memory.
func (f *serveFlags) openStore(ctx context.Context) (closableStore, error) {
	kind, rest, _ := strings.Cut(f.store, ":")
	switch kind {
	case "file":
		store, err := bolt.Open(rest, nil)
		if err != nil {
			return nil, &exitError{exitRuntime, fmt.Sprintf("--store file: %v", err)}
		}
		return store, nil
	case "redis", "rediss":
		url := f.store
		if after, ok := strings.CutPrefix(f.store, "redis:redis"); ok {
			url = "redis" + after // redis:URL
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		store, err := redis.Open(ctx, url, nil)
		if err != nil {
			return nil, &exitError{exitRuntime, fmt.Sprintf("--store redis: %v", err)}
		}
		return store, nil
	}
	return nil, nil
}

// closeStore closes the store, when the engine is done with it and what waits
// for it is written.
func (s *server) closeStore() {
	if s.store == nil {
		return
	}
	if s.stored != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.stored.Flush(ctx); err != nil {
			s.log.Error("the events of streams could not all be kept", "error", err)
		}
	}
	if err := s.store.Close(); err != nil {
		s.log.Error("closing the store failed", "error", err)
	}
}

// events gives what makes streams resumable, or nil: what a wire case asks for;
// a store that outlives the process; memory where the conformance suite looks at
// that.
func (s *server) events() transport.EventStore {
	switch events := s.config.EventStore.store(); {
	case events != nil:
		return events
	case s.store != nil:
		s.stored = transport.NewStoredEvents(s.store, &transport.StoredEventsOptions{Logger: s.log})
		return s.stored
	case s.flags.fixture == "conformance":
		return transport.NewMemoryEvents(0, 0)
	}
	return nil
}
