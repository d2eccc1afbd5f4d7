package keyfunc

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/weirgo/weir/internal/notice"
)

var errNoAddress = noKey("client address")

// ClientIP finds the address of the client that sent r, whole: IPv4-mapped IPv6
// is the IPv4 in it, and a zone is dropped.
//
// It is the socket's peer, unless t believes that peer. Then the client is
// looked for in the header: in a list from right to left, past the proxies that
// t names or as many as it counts, and is the first address behind them. All
// lines of the header are one list, in their order; blank elements are dropped,
// and ports, brackets and quotes taken off. What stands further left the client
// may have written itself. A header that holds one address holds the client's.
//
// It is the peer too where the header is absent, has fewer elements than t
// counts or names proxies only, and where the search meets what is no address,
// such as "unknown" or "_hidden", an element without "for" or one that has it
// twice: to go on to the left of that would be to believe the client. For the
// same reason a header with one address must not stand twice. Only the last 4096
// bytes of a list are looked at, however long it is.
//
// The error wraps [ErrNoKey] if that leaves no usable address: the peer is on a
// Unix socket, or the request's RemoteAddr holds none (with or without a port is
// fine), or 0.0.0.0 or "::"; or the client is not within those 4096 bytes.
func (t Trust) ClientIP(r *http.Request) (netip.Addr, error) {
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok {
		peer = netip.Addr{}
	}
	if t.anyPeer || ok && t.peers.has(peer) || !ok && t.unix && onUnix(r) {
		lines := r.Header[t.header]
		if t.single {
			peer = fromSingle(peer, lines)
		} else {
			peer = t.fromList(peer, lines)
		}
	}
	if !peer.IsValid() {
		return netip.Addr{}, errNoAddress
	}
	return peer, nil
}

// odd is what is odd about r, or "": that a header is not believed which proxies
// set, or that everybody's is.
func (t Trust) odd(r *http.Request) notice.Code {
	switch {
	case t.anyPeer:
		return notice.EveryoneTrusted
	case t.header == "" && (len(r.Header[forwardedFor]) > 0 || len(r.Header[forwarded]) > 0 || len(r.Header["X-Real-Ip"]) > 0):
		return notice.UntrustedHeaders
	}
	return ""
}

// onUnix tells whether r came in over a Unix socket. A server of net/http says
// so; what stands in for one can show it in RemoteAddr only.
func onUnix(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return strings.HasPrefix(local.Network(), "unix")
	}
	return r.RemoteAddr == "" || r.RemoteAddr[0] == '@' || r.RemoteAddr[0] == '/'
}

// fromSingle is the address that the edge has written, or else peer.
func fromSingle(peer netip.Addr, lines []string) netip.Addr {
	if len(lines) == 1 {
		if a, ok := parseElement(strings.Trim(lines[0], " \t")); ok {
			return a
		}
	}
	return peer
}

// maxList is how much of a list is looked at, in bytes.
const maxList = 4096

// fromList is the address of the client for whom peer speaks, or else peer; and none
// where the list is too long to know: a client can make the element of a proxy that
// writes down its Host that long, and must not pass for the proxy. It cuts from the
// right and keeps nothing, as a client may have sent a header of a million commas.
func (t Trust) fromList(peer netip.Addr, lines []string) netip.Addr {
	rfc7239 := t.header == forwarded
	hop, left := 0, maxList
	for i := len(lines) - 1; i >= 0; i-- {
		if left <= 0 {
			return netip.Addr{}
		}
		rest := lines[i]
		whole := len(rest) <= left
		if !whole {
			// With the comma before the first element in sight, or text to the left of
			// that would decide whether it is seen.
			before := strings.TrimSuffix(rest[:len(rest)-left], " ")
			rest = rest[max(len(before)-1, 0):]
		}
		left -= len(rest) + 1 // with the comma that joins lines, or empty ones would cost nothing
		for more := true; more; {
			elem := rest
			if comma := lastComma(rest, rfc7239); comma >= 0 {
				rest, elem = rest[:comma], rest[comma+1:]
			} else if more = false; !whole {
				return netip.Addr{} // the rest of this element is out of sight
			}
			elem = strings.Trim(elem, " \t")
			if elem == "" {
				continue
			}
			if hop++; hop < t.hops {
				continue
			}
			ok := true
			if rfc7239 {
				elem, ok = nodeOf(elem)
			}
			var a netip.Addr
			if ok {
				a, ok = parseElement(elem)
			}
			switch {
			case !ok:
				return peer
			case t.hops > 0 || !t.peers.has(a):
				return a
			}
		}
	}
	return peer
}

// lastComma is where the last comma of s is, or -1. In Forwarded those in quotes
// don't count. To look for them from the right is safe: the elements there are
// whole, and a quote that a client leaves open is to the left of them.
func lastComma(s string, quotes bool) int {
	if !quotes {
		return strings.LastIndexByte(s, ',')
	}
	quoted := false
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case s[i] == ',' && !quoted:
			return i
		case s[i] == '"' && !escaped(s[:i]):
			quoted = !quoted
		}
	}
	return -1
}

// escaped tells whether what comes after s is escaped by a backslash.
func escaped(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// nodeOf is the value of "for" in an element of Forwarded (RFC 7239 §4), which
// must have it once.
func nodeOf(elem string) (node string, ok bool) {
	for elem != "" {
		end, quoted := 0, false
		for ; end < len(elem) && (quoted || elem[end] != ';'); end++ {
			switch {
			case elem[end] == '"':
				quoted = !quoted
			case elem[end] == '\\' && quoted:
				end++
			}
		}
		pair := elem[:min(end, len(elem))]
		elem = elem[min(end+1, len(elem)):]
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "for") {
			continue
		}
		if ok {
			return "", false
		}
		node, ok = strings.Trim(value, " \t"), true
	}
	return node, ok
}

// parseElement reads an address that may stand in quotes. What is escaped there
// is read as it is meant: `"192\.0.2.1"` is odd, but an address.
func parseElement(s string) (netip.Addr, bool) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
		if strings.IndexByte(s, '\\') >= 0 {
			s = unescaped(s)
		}
	}
	return parseAddr(s)
}

func unescaped(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}
