// Package selfcheck holds the load generator to answers that are known beforehand: what this machine adds to every time
// (the noise floor), the highest rates at which the generator keeps its word here, and short forms of the oracles, each a
// run of package bench against a calibrated peer whose outcome follows from a formula.
//
// A machine that is busy with other things can spoil any of it. So a probe looks at the machine while a check runs: what
// comes out wrong is a failure on a calm machine and no finding at all on a busy one.
package selfcheck
