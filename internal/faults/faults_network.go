package main

import "time"

// toxic is a fault of the connections to a single server.
func toxic(name, what, json string) fault {
	return fault{Name: name, What: what, strike: func(b *bed) func() { return b.toxic(json) }}
}

var networkFaults = []fault{
	{Name: "none", What: "nothing is wrong", strike: func(*bed) func() { return func() {} }},
	toxic("latency 10 ms", "answers come 10 ms late, which is in time",
		`{"type": "latency", "attributes": {"latency": 10}}`),
	toxic("latency 40 ± 40 ms", "answers come late, some of them too late",
		`{"type": "latency", "attributes": {"latency": 40, "jitter": 40}}`),
	toxic("latency 500 ms", "answers come too late",
		`{"type": "latency", "attributes": {"latency": 500}}`),
	toxic("half open, no answers", "the server gets commands, and its answers get lost: what it decides is not told",
		`{"type": "timeout", "attributes": {"timeout": 0}}`),
	toxic("half open, no commands", "commands get lost, and connections stay",
		`{"type": "timeout", "stream": "upstream", "attributes": {"timeout": 0}}`),
	toxic("slow reads", "answers come at 1 KB a second",
		`{"type": "bandwidth", "attributes": {"rate": 1}}`),
	toxic("slow writes", "commands go at 1 KB a second",
		`{"type": "bandwidth", "stream": "upstream", "attributes": {"rate": 1}}`),
	toxic("resets", "connections are reset when an answer comes",
		`{"type": "reset_peer", "attributes": {"timeout": 0}}`),
	toxic("reset in an answer", "connections end after 200 bytes, in the middle of an answer",
		`{"type": "limit_data", "attributes": {"bytes": 200}}`),
	toxic("cut in a command", "connections end after 2000 bytes, in the middle of a command",
		`{"type": "limit_data", "stream": "upstream", "attributes": {"bytes": 2000}}`),
	{Name: "cut", What: "connections are cut, new ones refused", strike: func(b *bed) func() {
		b.proxies[0].Stop()
		return func() { b.start(0) }
	}},
	{Name: "flapping", What: "connections are cut and allowed again every 50 ms", strike: func(b *bed) func() {
		return b.repeat(50*time.Millisecond, func() {
			b.proxies[0].Stop()
			time.Sleep(25 * time.Millisecond) // of a real network
			b.start(0)
		})
	}},
}

// start lets the proxy of a server go on where it was.
func (b *bed) start(i int) {
	if err := b.proxies[i].Start(); err != nil {
		b.Fatal(err)
	}
}
