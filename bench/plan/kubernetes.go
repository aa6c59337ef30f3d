package plan

import (
	"fmt"
	"io"
	"strings"
)

// WriteKubernetes writes the replicas, requests and limits as a patch of a Deployment, with the assumptions as comments.
// name is that of the container. What is not known is left out.
func (p *Plan) WriteKubernetes(w io.Writer, name string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", p.Answer)
	b.WriteString("# kubectl patch deployment NAME --patch-file THIS_FILE\n#\n# It assumes:\n")
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "# - %s\n", a)
	}
	for i, u := range p.Unknown {
		if i == 0 {
			b.WriteString("# Not known, and left out:\n")
		}
		fmt.Fprintf(&b, "# - %s\n", u)
	}
	fmt.Fprintf(&b, "spec:\n  replicas: %d\n", p.WithHeadroom)
	r := &p.Resources
	if r.CPURequestMillis > 0 || r.MemoryRequestMiB > 0 {
		fmt.Fprintf(&b, "  template:\n    spec:\n      containers:\n        - name: %q\n          resources:\n", name)
		section := func(title string, millis, mebi int) {
			fmt.Fprintf(&b, "            %s:\n", title)
			if millis > 0 {
				fmt.Fprintf(&b, "              cpu: %dm\n", millis)
			}
			if mebi > 0 {
				fmt.Fprintf(&b, "              memory: %dMi\n", mebi)
			}
		}
		section("requests", r.CPURequestMillis, r.MemoryRequestMiB)
		section("limits", r.CPULimitMillis, r.MemoryLimitMiB)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
