package main

import "strings"

// withoutSecrets gives a command line for a result file: the values of headers,
// which may be credentials, are left out.
func withoutSecrets(argv []string) []string {
	clean := append([]string(nil), argv...)
	for i, arg := range clean {
		switch {
		case arg == "--":
			return clean // the command of a server, whose words are its own
		case (arg == "-H" || arg == "--header") && i+1 < len(clean):
			clean[i+1] = maskHeader(clean[i+1])
		case strings.HasPrefix(arg, "--header="):
			clean[i] = "--header=" + maskHeader(strings.TrimPrefix(arg, "--header="))
		case strings.HasPrefix(arg, "-H") && len(arg) > 2:
			clean[i] = "-H" + maskHeader(arg[2:])
		}
	}
	return clean
}

func maskHeader(header string) string {
	name, _, _ := strings.Cut(header, ":")
	return name + ": ***"
}
