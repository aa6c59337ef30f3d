package wire

import (
	"net/http"
	"os/exec"
)

// Header holds the headers of a request, as package http has them, so that
// whoever drives connections needs no HTTP library of its own.
type Header = http.Header

// HTTP statuses that mean something to whoever drives connections.
const (
	StatusUnauthorized     = http.StatusUnauthorized
	StatusForbidden        = http.StatusForbidden
	StatusNotFound         = http.StatusNotFound
	StatusMethodNotAllowed = http.StatusMethodNotAllowed
)

// ErrCommandNotFound is found by errors.Is in the error of a Process whose
// command does not exist.
var ErrCommandNotFound = exec.ErrNotFound
