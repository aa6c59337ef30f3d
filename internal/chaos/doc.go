// Package chaos breaks connections, so that tests can see what the two ends of a
// transport make of it.
//
// A Proxy stands between clients and a server and does to each connection what a
// Plan says: nothing, or one Fault. The plan follows from a seed, so that a run
// can be tried again with the same faults; which request meets which fault
// depends on the scheduler as well. The proxy tells which connections it has
// hurt. A test may thus hold an answer that is missing on a sound connection
// against the server, and not forgive everything because something, somewhere,
// was broken.
//
// TestChaos in this package is what it was made for: clients of every kind, of
// our make and of none, call a server in this process and one that is killed
// again and again, while connections break, handlers panic and clocks jump.
package chaos
