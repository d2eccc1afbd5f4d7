package main

import (
	"context"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// config is a fault of a single server's settings.
func config(name, what, setting, bad, good string) fault {
	return fault{Name: name, What: what, strike: func(b *bed) func() {
		b.do(0, "CONFIG", "SET", setting, bad)
		return func() { b.do(0, "CONFIG", "SET", setting, good) }
	}}
}

var serverFaults = []fault{
	{Name: "stopped", What: "the process stands still (SIGSTOP) and goes on", strike: func(b *bed) func() {
		b.signal(0, syscall.SIGSTOP)
		return func() { b.signal(0, syscall.SIGCONT) }
	}},
	{Name: "killed, empty", What: "the process is killed and started without its data: all limits begin afresh", losses: 1, strike: killed},
	{Name: "killed, with its log", What: "the process is killed and started with all that it wrote (`appendfsync always`)", on: logged, strike: killed},
	{Name: "loading", What: "the process is killed and takes long to load a snapshot: charges after that are lost", losses: 1, strike: func(b *bed) func() {
		b.do(0, "SAVE")
		b.servers[0].Stop()
		up := make(chan error, 1)
		go func() {
			up <- b.servers[0].Restart("--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024")
		}()
		return func() {
			if err := <-up; err != nil {
				b.Fatal(err)
			}
		}
	}},
	{Name: "read-only", What: "the server has become a replica of one that is not there (READONLY)", strike: func(b *bed) func() {
		b.do(0, "REPLICAOF", "127.0.0.1", "1")
		return func() { b.do(0, "REPLICAOF", "NO", "ONE") }
	}},
	{Name: "no master", What: "the same, and it answers nothing without one (MASTERDOWN)", strike: func(b *bed) func() {
		b.do(0, "CONFIG", "SET", "replica-serve-stale-data", "no")
		b.do(0, "REPLICAOF", "127.0.0.1", "1")
		return func() { b.do(0, "REPLICAOF", "NO", "ONE") }
	}},
	config("no replicas", "the server wants replicas and has none (NOREPLICAS)", "min-replicas-to-write", "1", "0"),
	config("full", "the memory is full and nothing is evicted (OOM)", "maxmemory", "1", "0"),
	{Name: "no rights", What: "the user may not run scripts any more (NOPERM)", strike: func(b *bed) func() {
		b.do(0, "ACL", "SETUSER", "default", "-evalsha", "-eval")
		return func() { b.do(0, "ACL", "SETUSER", "default", "+evalsha", "+eval") }
	}},
	{Name: "too many clients", What: "connections are closed and new ones refused (max number of clients reached)", strike: func(b *bed) func() {
		b.do(0, "CONFIG", "SET", "maxclients", "1")
		b.do(0, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		return func() { b.do(0, "CONFIG", "SET", "maxclients", "10000") }
	}},
	{Name: "clients killed", What: "the server closes all connections every 20 ms", strike: func(b *bed) func() {
		return b.repeat(20*time.Millisecond, func() { b.do(0, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
	}},
	{Name: "clients paused", What: "the server holds all scripts back (CLIENT PAUSE)", strike: func(b *bed) func() {
		b.do(0, "CLIENT", "PAUSE", 600_000, "WRITE")
		return func() { b.do(0, "CLIENT", "UNPAUSE") }
	}},
	{Name: "scripts forgotten", What: "SCRIPT FLUSH every 20 ms", strike: func(b *bed) func() {
		return b.repeat(20*time.Millisecond, func() { b.do(0, "SCRIPT", "FLUSH") })
	}},
	{Name: "busy", What: "another's script does not end (BUSY) until it is killed", strike: busy},
	{Name: "foreign data", What: "the keys hold something else (WRONGTYPE, WEIRSTATE) and are then deleted: their limits begin afresh", losses: 1, strike: foreign},
	{Name: "emptied", What: "FLUSHALL: all limits begin afresh", losses: 1, strike: func(b *bed) func() {
		b.do(0, "FLUSHALL")
		return func() {}
	}},
	{Name: "clock back 300 ms", What: "the server's clock steps back by less than a window, and forth", on: timed, strike: clockBy(-300 * time.Millisecond)},
	{Name: "clock ahead 1 h", What: "the server's clock steps ahead, which drains all, and back: what is that far ahead is dropped", on: timed, losses: 2, strike: clockBy(time.Hour)},
}

func (b *bed) signal(i int, s syscall.Signal) {
	if err := syscall.Kill(b.servers[i].PID(), s); err != nil {
		b.Fatal(err)
	}
}

func killed(b *bed) func() {
	b.servers[0].Stop()
	return func() {
		if err := b.servers[0].Restart(); err != nil {
			b.Fatal(err)
		}
	}
}

// repeat calls f again and again until it is healed.
func (b *bed) repeat(pause time.Duration, f func()) (heal func()) {
	stop, ended := make(chan struct{}), make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }() // what was fatal
		for tick := time.NewTicker(pause); ; {
			f()
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(stop)
		if fatal := <-ended; fatal != nil {
			panic(fatal)
		}
	}
}

func busy(b *bed) func() {
	b.do(0, "CONFIG", "SET", "busy-reply-threshold", "10")
	other := redis.NewClient(&redis.Options{Addr: b.servers[0].Addr, ReadTimeout: -1, MaxRetries: -1})
	var done sync.WaitGroup
	done.Go(func() { _ = other.Eval(context.Background(), "while true do end", nil).Err() }) // killed is what it will be
	return func() {
		b.do(0, "SCRIPT", "KILL")
		done.Wait()
		_ = other.Close()
	}
}

// foreign puts a text in the place of every key, and a list in that of every other.
func foreign(b *bed) func() {
	ctx, c := context.Background(), b.admin[0]
	each := func(f func(key string)) {
		keys, err := c.Keys(ctx, "weir-*").Result()
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range keys {
			f(k)
		}
	}
	n := 0
	each(func(key string) {
		if n++; n%2 == 0 { // at once, or a charge comes in between
			b.do(0, "EVAL", "redis.call('DEL', KEYS[1]) return redis.call('LPUSH', KEYS[1], 'foreign')", 1, key)
		} else {
			b.do(0, "SET", key, "foreign")
		}
	})
	return func() { each(func(key string) { b.do(0, "DEL", key) }) }
}

func clockBy(d time.Duration) func(*bed) func() {
	return func(b *bed) func() {
		b.offset.Store(int64(d))
		return func() { b.offset.Store(0) }
	}
}
