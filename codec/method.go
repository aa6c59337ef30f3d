package codec

// Names of the protocol's methods and notifications.
const (
	MethodInitialize            = "initialize"
	MethodPing                  = "ping"
	MethodDiscover              = "server/discover"
	MethodToolsList             = "tools/list"
	MethodToolsCall             = "tools/call"
	MethodResourcesList         = "resources/list"
	MethodResourceTemplatesList = "resources/templates/list"
	MethodResourcesRead         = "resources/read"
	MethodResourcesSubscribe    = "resources/subscribe"
	MethodResourcesUnsubscribe  = "resources/unsubscribe"
	MethodPromptsList           = "prompts/list"
	MethodPromptsGet            = "prompts/get"
	MethodComplete              = "completion/complete"
	MethodSetLevel              = "logging/setLevel"
	MethodSample                = "sampling/createMessage"
	MethodElicit                = "elicitation/create"
	MethodRootsList             = "roots/list"
	MethodTasksGet              = "tasks/get"
	MethodTasksResult           = "tasks/result"
	MethodTasksList             = "tasks/list"
	MethodTasksCancel           = "tasks/cancel"
	MethodTasksUpdate           = "tasks/update"
	MethodListen                = "subscriptions/listen"

	NotifyInitialized          = "notifications/initialized"
	NotifyCancelled            = "notifications/cancelled"
	NotifyProgress             = "notifications/progress"
	NotifyMessage              = "notifications/message"
	NotifyToolsChanged         = "notifications/tools/list_changed"
	NotifyPromptsChanged       = "notifications/prompts/list_changed"
	NotifyResourcesChanged     = "notifications/resources/list_changed"
	NotifyResourceUpdated      = "notifications/resources/updated"
	NotifyRootsChanged         = "notifications/roots/list_changed"
	NotifyElicitationComplete  = "notifications/elicitation/complete"
	NotifyTaskStatus           = "notifications/tasks/status"
	NotifyTasks                = "notifications/tasks"
	NotifySubscriptionsStarted = "notifications/subscriptions/acknowledged"
)

// Member names of _meta that the protocol reserves.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaRelatedTask        = "io.modelcontextprotocol/related-task"
	MetaProgressToken      = "progressToken"
)
