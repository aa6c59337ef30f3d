// Package replica starts several servers from one command and puts a small router before them, so that a plan for k
// replicas can be tried on one machine.
package replica
