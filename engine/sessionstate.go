package engine

import (
	"context"
	"encoding/json"
	"strings"
)

// sessionState is what a session has settled since its handshake.
type sessionState struct {
	Level         Level    `json:"level"`
	Subscriptions []string `json:"subscriptions,omitempty"` // URIs
}

// maxSessionState is how many bytes of state go to a store. A session with
// more loses it where it ends before its time.
const maxSessionState = 256 << 10

// persist saves the state of a sealed session after a change, before the
// change is answered. Each change waits for its turn, so that the last one
// saved is the newest. Where the store fails the change holds as long as the
// session stays in this process.
func (s *Session) persist(ctx context.Context) {
	if s.sealing == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	select {
	case s.sealing.turn <- struct{}{}:
	case <-ctx.Done():
		s.engine.storeFailed("saving the state of a session", ctx.Err())
		return
	}
	defer func() { <-s.sealing.turn }()
	state := sessionState{Level: s.Level()}
	for _, topic := range s.actor.Topics() {
		if uri, ok := strings.CutPrefix(topic, topicResource); ok {
			state.Subscriptions = append(state.Subscriptions, uri)
		}
	}
	raw, err := json.Marshal(&state)
	switch {
	case err != nil || len(raw) > maxSessionState:
		s.engine.log.Warn("the state of a session is too large to be kept", "bytes", len(raw))
	default:
		err = s.engine.options.Sessions.Save(ctx, s.sealing.ref, raw)
	}
	if err != nil {
		s.engine.storeFailed("saving the state of a session", err)
	}
}

// resume takes up a state that was saved. What cannot be had any more, a
// subscription to a resource that is gone say, is left out.
func (s *Session) resume(raw []byte) {
	var state sessionState
	if len(raw) == 0 || json.Unmarshal(raw, &state) != nil || state.Level > LevelEmergency {
		return
	}
	s.level.Store(uint32(state.Level))
	for _, uri := range state.Subscriptions {
		_ = s.subscribe([]byte(uri))
	}
}
