package replica

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
)

// Run runs a line of the shell to its end, such as the one that ends a replica. The error holds the last line that it
// wrote.
func Run(ctx context.Context, line string) error {
	shell, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/C"
	}
	var log tail
	cmd := exec.CommandContext(ctx, shell, flag, line)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%q: %w%s", line, err, log.last())
	}
	return nil
}
