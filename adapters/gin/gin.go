// Package ginadapter limits what gin serves:
//
//	g.Use(ginadapter.Middleware(limit))
//
// Count addresses by keyfunc.IP and not by c.ClientIP: gin believes every peer
// until SetTrustedProxies says whom, so a client writes its own address. One
// client has many there even behind proxies that are named: IPv6 comes whole, an
// address as the header spells it, and if that has a port X-Real-IP is taken,
// which may be the client's.
package ginadapter

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/weirgo/weir/middleware"
)

// Middleware limits what comes after it, on an engine, a group or a route. A
// refused request is aborted, and the Decision of one that passes is in the
// context of c.Request. For a rule with Refund the status is c.Writer.Status(): a
// connection that is taken over counts as what was set before, or 200, and what a
// middleware around this one sets afterwards, as from c.Errors, comes too late.
//
// For the decision the request has gin's pattern and path values, as c.FullPath
// and c.Param give them: the value of a wildcard begins with "/". They are
// decoded, also where UnescapePathValues is off. Where no route matches, Pattern
// is empty and there are no values.
//
// The redirects of gin, to another spelling of a path, come before all
// middleware and are not counted.
func Middleware(m *middleware.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		// In place, as http.ServeMux does it: a copy would hide the route from what
		// is around gin. A pattern from outside must not stay where gin has none, or
		// those who scan for paths get its budget and not that of the unmatched.
		c.Request.Pattern = c.FullPath()
		routed := c.Request.Pattern != "" // else Params can hold what a failed search left
		encoded := routed && isEncoded(c)
		if routed {
			spell := asRouted
			if encoded {
				spell = decoded
			}
			setPathValues(c.Request, c.Params, spell)
		}
		r, ok := m.Allow(c.Writer, c.Request)
		if !ok {
			c.Abort()
			// gin keeps the status back until there is a body, and the answer to HEAD
			// has none: a middleware around this one would take it for unwritten.
			c.Writer.WriteHeaderNow()
			return
		}
		if encoded {
			// A handler that decodes what gin gives must not do it twice.
			setPathValues(r, c.Params, asRouted)
		}
		if r == c.Request { // it is not counted here, and not to be settled here
			return
		}
		c.Request = r
		defer m.Settle(r, http.StatusInternalServerError) // counts where a handler panics, which it does still
		c.Next()
		m.Settle(r, c.Writer.Status())
	}
}

// setPathValues sets the path values to what spell makes of params.
func setPathValues(r *http.Request, params gin.Params, spell func(string) string) {
	for _, p := range slices.Backward(params) { // of two with one name, c.Param gives the first
		r.SetPathValue(p.Key, spell(p.Value))
	}
}

func asRouted(value string) string { return value }

// decoded is value without percent-encoding. Each spelling would be another key
// for the same thing.
func decoded(value string) string {
	if s, err := url.PathUnescape(value); err == nil {
		return s
	}
	return value
}

// isEncoded tells whether gin has left percent-encoding in the path values, as it
// does by UseRawPath or UseEscapedPath without UnescapePathValues: then the
// pattern with the values in it is the path as the client wrote it. That has
// other percent signs than the decoded path, if any.
func isEncoded(c *gin.Context) bool {
	if !slices.ContainsFunc(c.Params, func(p gin.Param) bool { return strings.Contains(p.Value, "%") }) {
		return false
	}
	var b strings.Builder
	rest := c.FullPath() + "/"
	for _, p := range c.Params {
		before, after, ok := strings.Cut(rest, ":"+p.Key+"/")
		if !ok { // then it is a wildcard, whose value begins with the slash
			before, after, _ = strings.Cut(rest, "/*"+p.Key+"/")
		}
		b.WriteString(before + p.Value)
		rest = "/" + after
	}
	b.WriteString(strings.TrimSuffix(rest, "/"))
	routed, asked := b.String(), c.Request.URL.EscapedPath()
	return routed == asked || strings.TrimSuffix(routed, "/") == path.Clean(asked) // by RemoveExtraSlash
}
