package main

import "slices"

// fault is one kind of trouble.
type fault struct {
	Name   string
	What   string // it is, and what is documented of it
	on     topology
	losses int  // of the state, that are documented
	split  bool // there can be two masters, each of which lets the limit through
	strike func(*bed) (heal func())
}

// faults are all, the network's first.
var faults = slices.Concat(networkFaults, serverFaults, clusterFaults, sentinelFaults)
