package celltest

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// conn sends commands to a server in the name of a connection, and reads the
// replies itself.
type conn struct {
	server *server.Server
	ctx    any // what miniredis knows of the connection: its database, its AUTH, its MULTI
}

// raw is the reply as it is sent.
func (c *conn) raw(args ...string) string {
	var reply bytes.Buffer
	peer := server.NewPeer(bufio.NewWriter(&reply))
	peer.Ctx = c.ctx
	c.server.Dispatch(peer, args)
	peer.Flush()
	c.ctx = peer.Ctx
	return reply.String()
}

func (c *conn) do(args ...string) (any, error) {
	return server.ParseReply(bufio.NewReader(strings.NewReader(c.raw(args...))))
}

// place is where a client sends a command from.
type place int

const (
	refused place = iota // the client may not send it
	plain
	inMulti
	inScript
)

// nobodys is a key that nobody has.
const nobodys = "\x00celltest"

// place finds out by WATCH, which miniredis refuses everywhere but outside, where
// it does nothing to a key that never changes. Of the refused it returns the error.
func (c *conn) place() (place, string) {
	_, err := c.do("WATCH", nobodys)
	switch {
	case err == nil:
		return plain, ""
	case err.Error() == "ERR WATCH in MULTI":
		return inMulti, ""
	case strings.HasPrefix(err.Error(), "This Redis command is not allowed from script"):
		return inScript, ""
	}
	return refused, strings.Replace(err.Error(), "'watch'", "'cl.throttle'", 1)
}

// database is the number of the client's: the one that MOVE does not move to.
func (c *conn) database() (int, error) {
	for i := range databases {
		_, err := c.do("MOVE", nobodys, strconv.Itoa(i))
		if err != nil && err.Error() == "ERR source and destination objects are the same" {
			return i, nil
		}
	}
	return 0, errors.New("the database is none of 0 to 15")
}

// micros is the server's time in Unix microseconds.
func (c *conn) micros() (int64, error) {
	reply, err := c.do("TIME")
	if err != nil {
		return 0, err
	}
	var parts [2]int64
	if reply, ok := reply.([]any); ok && len(reply) == len(parts) {
		for i := range parts {
			text, _ := reply[i].(string)
			if parts[i], err = strconv.ParseInt(text, 10, 64); err != nil {
				return 0, err
			}
		}
	}
	return parts[0]*1e6 + parts[1], nil
}
