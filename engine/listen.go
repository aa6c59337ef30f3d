package engine

import (
	"context"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
)

// Topics of the subscriptions to lists. Those to resources and tasks have a
// prefix, so that no URI is taken for another topic.
const (
	topicResource = "resource:"
	topicTask     = "task:"
)

var listTopics = [listKinds]string{listTools: "list:tools", listResources: "list:resources", listPrompts: "list:prompts"}

// listMembers are the members of a listen filter for the lists.
var listMembers = [listKinds]string{
	listTools: "toolsListChanged", listResources: "resourcesListChanged", listPrompts: "promptsListChanged",
}

// maxFilter bounds how many resources and tasks one subscription may name.
const maxFilter = 1000

// handleListen serves subscriptions/listen: a request that is answered only when
// the server ends it. First comes the acknowledgement of what is honoured, then
// what happens; what happens faster than the client reads coalesces.
func handleListen(ctx context.Context, c *Call) error {
	filter, topics, err := c.listenFilter()
	if err != nil {
		return err
	}
	who := c.audience()
	sub, err := c.engine.system.Listen(topics)
	if err != nil {
		return err
	}
	defer sub.Leave()
	id := append([]byte(`"`+codec.MetaSubscriptionID+`":`), c.message.ID...)
	ack := append([]byte(`{"_meta":{`), id...)
	ack = append(append(ack, `},"notifications":`...), filter...)
	if err := c.emit(codec.AppendNotification(nil, codec.NotifySubscriptionsStarted, append(ack, '}'))); err != nil {
		return err
	}
	buf := takeBuffer()
	defer giveBuffer(buf)
	var events []*actors.Event
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sub.Done():
			return c.endListen(id)
		case <-sub.Ready():
		}
		events = sub.Take(events[:0])
		for _, event := range events {
			if !who.hears(event.Topic) {
				continue
			}
			buf.b = c.engine.appendEvent(buf.b[:0], event, id)
			if len(buf.b) > 0 && c.emit(buf.b) != nil {
				return context.Canceled
			}
		}
	}
}

// endListen tells the client that the server ends the subscription: one page of
// the specification wants a cancellation for that, another the result.
func (c *Call) endListen(id []byte) error {
	params := append([]byte(`{"_meta":{`), id...)
	params = append(append(params, `},"requestId":`...), c.message.ID...)
	params = append(params, `,"reason":"the server ends the subscription"}`...)
	_ = c.emit(codec.AppendNotification(nil, codec.NotifyCancelled, params))
	c.out = append(append(append(c.out, `{"_meta":{`...), id...), '}', '}')
	return nil
}

var errNoFilter = codec.NewError(codec.CodeInvalidParams, `Invalid params: "notifications" must be an object`)

// listenFilter reads what the client asks for and gives what is honoured of it,
// raw and as topics.
func (c *Call) listenFilter() (filter []byte, topics []string, err error) {
	asked := codec.Member(c.message.Params, "notifications")
	if !codec.IsObject(asked) {
		return nil, nil, errNoFilter
	}
	set := c.engine.catalog.Load().capabilities()
	filter = []byte{'{'}
	for kind, member := range listMembers {
		if codec.Bool(asked, member) && set&listCapability[kind] != 0 {
			filter = append(appendComma(filter, 1), '"')
			filter = append(append(filter, member...), `":true`...)
			topics = append(topics, listTopics[kind])
		}
	}
	if uris := codec.Member(asked, "resourceSubscriptions"); uris != nil && set&capResources != 0 {
		filter, topics, err = appendNames(filter, topics, "resourceSubscriptions", topicResource, uris, nil)
		if err != nil {
			return nil, nil, err
		}
	}
	if ids := codec.Member(asked, "taskIds"); ids != nil {
		if err := c.needTasks(); err != nil {
			return nil, nil, err
		}
		if filter, topics, err = appendNames(filter, topics, "taskIds", topicTask, ids, c.ownsTask); err != nil {
			return nil, nil, err
		}
	}
	return append(filter, '}'), topics, nil
}

// appendNames takes over a list of strings from the filter, as far as honoured
// lets it, which is nil where all are.
func appendNames(filter []byte, topics []string, member, prefix string, list []byte, honoured func(name string) bool) ([]byte, []string, error) {
	filter = append(append(append(appendComma(filter, 1), '"'), member...), `":[`...)
	count, bad, start := 0, false, len(filter)
	walked := codec.EachElement(list, func(value []byte) bool {
		name, ok := codec.String(value)
		count++
		if bad = !ok || count > maxFilter; !bad && (honoured == nil || honoured(name)) {
			topics = append(topics, prefix+name)
			filter = codec.AppendString(appendComma(filter, start), name)
		}
		return !bad
	})
	if bad || !walked {
		return nil, nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: "+member+" is a list of at most 1,000 strings")
	}
	return append(filter, ']'), topics, nil
}

// ownsTask reports whether there is a task that the caller may see.
func (c *Call) ownsTask(id string) bool {
	record, err := c.engine.tasks.store.Get(id)
	return err == nil && record.Owner == c.owner()
}

// appendEvent appends the notification of an event, for the subscription whose
// raw _meta member is given. It appends nothing where there is nothing to tell.
func (e *Engine) appendEvent(dst []byte, event *actors.Event, id []byte) []byte {
	for kind, name := range listTopics {
		if event.Topic == name {
			dst = append(dst, changedHeads[kind]...)
			return append(append(dst, id...), `}}}`...)
		}
	}
	if event.Frame != nil {
		dst = append(dst, updatedHead+`"_meta":{`...)
		dst = append(append(dst, id...), '}', ',')
		return append(dst, event.Frame[len(updatedHead):]...)
	}
	return e.tasks.appendEvent(dst, event.Topic[len(topicTask):], id)
}

var changedHeads = [listKinds]string{
	listTools:     `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{`,
	listResources: `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{`,
	listPrompts:   `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{`,
}
