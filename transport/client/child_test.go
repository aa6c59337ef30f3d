package client_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const childVar = "MCPENGINE_CLIENT_TEST_CHILD"

// child is the server that Spawn starts. kind says what is wrong with it.
func child(kind string) int {
	fmt.Fprintln(os.Stderr, "hello from", kind)
	switch kind {
	case "dies at once":
		return 3
	case "ignores SIGTERM":
		signal.Ignore(syscall.SIGTERM)
	case "is chatty":
		for i := range 10_000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		return 3
	case "leaves a child":
		orphan := exec.Command(os.Args[0])
		orphan.Env = append(os.Environ(), childVar+"=lingers")
		orphan.Stdout, orphan.Stderr = os.Stdout, os.Stderr
		if err := orphan.Start(); err != nil {
			return 6
		}
	case "lingers":
		time.Sleep(3 * time.Second)
		return 0
	case "says nothing":
		time.Sleep(time.Minute)
	case "prints garbage":
		fmt.Println("Welcome!\n\n{\"half\":")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 32<<20)
	for lines.Scan() {
		var f frame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return 4
		}
		switch f.Method {
		case "initialize":
			fmt.Println(resultOf(f, initResult))
		case "echo":
			fmt.Println(resultOf(f, string(f.Params)))
		case "die":
			return 5
		case "server/discover":
			if kind == "dies of discover" {
				return 7
			}
		}
	}
	if strings.HasPrefix(kind, "ignores") {
		time.Sleep(time.Minute) // but not for ever, should the test itself die
	}
	return 0
}
