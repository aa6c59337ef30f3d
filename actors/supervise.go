package actors

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// stopFailed is the one supervision strategy: what failed is stopped, never
// restarted with half its state, and the event stream is told. It is a value
// without fields, so that every use of it means the same guardian.
type stopFailed struct{}

var _ actor.SupervisorStrategy = stopFailed{}

// HandleFailure publishes the failure and stops the child.
func (stopFailed) HandleFailure(system *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, _ any,
) {
	system.EventStream.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: actor.StopDirective})
	supervisor.StopChildren(child)
}

// lowered is a handler that takes each record one level lower, since what the
// actor library calls information is noise to an operator.
type lowered struct{ slog.Handler }

func (h lowered) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, level-4)
}

func (h lowered) Handle(ctx context.Context, r slog.Record) error {
	r.Level -= 4
	return h.Handler.Handle(ctx, r)
}

func (h lowered) WithAttrs(a []slog.Attr) slog.Handler { return lowered{h.Handler.WithAttrs(a)} }
func (h lowered) WithGroup(g string) slog.Handler      { return lowered{h.Handler.WithGroup(g)} }
