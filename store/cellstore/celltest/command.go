package celltest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alicebob/miniredis/v2/server"
)

// handle is the command. miniredis runs each of its own under a lock, and a script
// with all that it calls: so a command decides as one that a script has called, by
// others in the script's name. A client's own command takes the lock itself, and in
// MULTI the script is what is queued.
func (m *Module) handle(c *server.Peer, _ string, args []string) {
	client := &conn{m.server, c.Ctx}
	where, refusal := client.place()
	var reply string
	var err error
	switch where {
	case plain:
		reply, err = m.alone(client, args)
	case inMulti:
		reply = client.raw(append([]string{"EVAL", "return redis.pcall('CL.THROTTLE', unpack(ARGV))", "0"}, args...)...)
	case inScript:
		m.script = c.Ctx // one is as good as another
		var w write
		w, err = m.run(client, args)
		reply = w.reply
	default:
		err = errors.New(refusal)
	}
	if reason, ok := err.(fatal); ok {
		m.abort(reason)
	}
	switch {
	case m.Aborted() != nil:
		c.Close()
	case err != nil:
		c.WriteRaw(errorReply(err.Error()))
	default:
		c.WriteRaw(reply)
	}
}

// write is what a command has written, and its reply.
type write struct {
	reply      string
	key, value string
	life       time.Duration // of the key; 0 if it has no end
}

// alone runs a command that is in no script.
func (m *Module) alone(client *conn, args []string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, err := client.database()
	if err != nil {
		return "", internal(err)
	}
	w, err := m.locked(client, number, args)
	if err != nil || w.life == 0 {
		return w.reply, err
	}
	// The key has a nanosecond too much: see SetTime. On 32 bits it has no end yet,
	// since miniredis's PEXPIREAT takes an int.
	db := m.redis.DB(number)
	if value, err := db.Get(w.key); err == nil && value == w.value {
		db.SetTTL(w.key, cmp.Or(db.TTL(w.key), w.life+1)-1)
	}
	return w.reply, nil
}

// locked runs a command under miniredis's lock.
func (m *Module) locked(client *conn, database int, args []string) (write, error) {
	m.redis.Lock()
	defer m.redis.Unlock()
	if m.script == nil {
		m.redis.Unlock() // for the script, which calls handle
		_ = client.raw("EVAL", "return redis.pcall('CL.THROTTLE')", "0")
		m.redis.Lock()
	}
	if m.script == nil { // or the commands below would wait for the lock
		return write{}, internal(errors.New("no script can be run"))
	}
	c := &conn{m.server, m.script}
	if _, err := c.do("SELECT", strconv.Itoa(database)); err != nil {
		return write{}, internal(err)
	}
	return m.run(c, args)
}

// run decides, by commands in the name of a script.
func (m *Module) run(c *conn, args []string) (write, error) {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return write{}, fatal(fmt.Sprintf("the argument %q is not valid UTF-8", arg))
		}
	}
	r, err := parse(args)
	if err != nil {
		return write{}, err
	}
	key := args[0]
	now, err := c.micros()
	if err != nil {
		return write{}, internal(err)
	}
	if exact := m.nanos.Load(); exact/1e3 == now {
		now = exact
	} else {
		now *= 1e3
	}
	tat, found, err := c.tat(key)
	if err != nil {
		return write{}, err
	}
	d := r.decide(now, tat, found)
	w := write{key: key, value: strconv.FormatUint(d.tat, 10)}
	w.reply = fmt.Sprintf("*5\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n:%d\r\n", d.reply[0], d.reply[1], d.reply[2], d.reply[3], d.reply[4])
	if !d.write {
		return w, nil
	}
	if _, err := c.do("SET", key, w.value); err != nil {
		return w, internal(err)
	}
	const noExpire = -1 // of the module API
	switch {
	case d.ttl == noExpire:
	case d.ttl < 0:
		return w, cellError("Error while setting key expire")
	default:
		// Redis ends a key after that millisecond, miniredis before.
		end := now/1e6 + d.ttl + 1
		w.life = time.Duration(max(1, min(d.ttl+1, math.MaxInt64/1_000_000)*1e6-now%1e6-1))
		_ = c.raw("PEXPIREAT", key, strconv.FormatInt(end, 10))
	}
	return w, nil
}

// tat is what a key holds.
func (c *conn) tat(key string) (tat uint64, found bool, err error) {
	reply, err := c.do("GET", key)
	switch text := reply.(type) {
	case nil:
		if err == nil {
			return 0, false, nil
		}
		if strings.HasPrefix(err.Error(), "WRONGTYPE") {
			return 0, false, fatal(fmt.Sprintf("the key %q holds no string", key))
		}
		return 0, false, internal(err)
	case string:
		// Rust allows a sign, strconv none.
		if tat, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 64); err == nil {
			return tat, true, nil
		}
	}
	return 0, false, fatal(fmt.Sprintf("the key %q holds %q", key, reply))
}

func parse(args []string) (request, error) {
	if len(args) != 4 && len(args) != 5 {
		return request{}, cellError("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
	}
	numbers := [4]int64{3: 1}
	for i, arg := range args[1:] {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return request{}, cellError("Couldn't parse as integer: " + arg)
		}
		numbers[i] = n
	}
	r := request{numbers[0], numbers[1], numbers[2], numbers[3]}
	if r.interval() == 0 {
		return request{}, cellError("Zero rates are not supported")
	}
	return r, nil
}

// cellError is an error of the module.
type cellError string

func (e cellError) Error() string { return "Cell error: Store error: " + string(e) }

// internal is an error that the module does not have.
func internal(err error) error { return fmt.Errorf("ERR celltest: %w", err) }

// fatal is why the module aborts.
type fatal string

func (e fatal) Error() string { return "celltest: CL.THROTTLE has aborted the server: " + string(e) }

// errorReply is the reply that Redis makes of a text: of a C string, in one line.
func errorReply(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return "-" + strings.NewReplacer("\r", " ", "\n", " ").Replace(strings.TrimRight(text, "\r\n")) + "\r\n"
}

// abort ends the server. What it can't do is end the goroutines of connections,
// ours among them: Close waits for those.
func (m *Module) abort(err error) {
	m.aborted.CompareAndSwap(nil, &err)
	m.server.SetPreHook(func(c *server.Peer, _ string, _ ...string) bool {
		c.Close()
		return true
	})
	if m.server.Addr() == nil {
		return // no listener: Close would race with Dial
	}
	go m.server.Close()
	for m.server.Addr() != nil { // then all connections are closed
		runtime.Gosched()
	}
}
