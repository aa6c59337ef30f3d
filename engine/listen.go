package engine

import (
	"context"
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
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sub.Done():
			return c.endListen(id)
		case <-sub.Ready():
		}
		for _, topic := range sub.Take() {
			buf.b = c.engine.appendEvent(buf.b[:0], topic, id)
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
		filter, topics, err = appendNames(filter, topics, "resourceSubscriptions", topicResource, uris)
		if err != nil {
			return nil, nil, err
		}
	}
	if ids := codec.Member(asked, "taskIds"); ids != nil {
		if err := c.needTasks(); err != nil {
			return nil, nil, err
		}
		if filter, topics, err = appendNames(filter, topics, "taskIds", topicTask, ids); err != nil {
			return nil, nil, err
		}
	}
	return append(filter, '}'), topics, nil
}

// appendNames takes over a list of strings from the filter.
func appendNames(filter []byte, topics []string, member, prefix string, list []byte) ([]byte, []string, error) {
	count, bad := 0, false
	walked := codec.EachElement(list, func(value []byte) bool {
		name, ok := codec.String(value)
		count++
		bad = !ok || count > maxFilter
		topics = append(topics, prefix+name)
		return !bad
	})
	if bad || !walked {
		return nil, nil, codec.NewError(codec.CodeInvalidParams, "Invalid params: "+member+" is a list of at most 1,000 strings")
	}
	filter = append(appendComma(filter, 1), '"')
	filter = append(append(filter, member...), `":`...)
	return append(filter, list...), topics, nil
}

// appendEvent appends the notification of a topic, for the subscription whose
// raw _meta member is given. It appends nothing where there is nothing to tell.
func (e *Engine) appendEvent(dst []byte, topic string, id []byte) []byte {
	for kind, name := range listTopics {
		if topic == name {
			dst = append(dst, changedHeads[kind]...)
			return append(append(dst, id...), `}}}`...)
		}
	}
	if len(topic) > len(topicResource) && topic[:len(topicResource)] == topicResource {
		dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{`...)
		dst = append(append(dst, id...), `},"uri":`...)
		dst = codec.AppendString(dst, topic[len(topicResource):])
		return append(dst, '}', '}')
	}
	return e.tasks.appendEvent(dst, topic[len(topicTask):], id)
}

var changedHeads = [listKinds]string{
	listTools:     `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{`,
	listResources: `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{`,
	listPrompts:   `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{"_meta":{`,
}
