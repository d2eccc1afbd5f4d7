// Package ginadapter limits what gin serves:
//
//	g.Use(ginadapter.Middleware(limit))
package ginadapter

import (
	"github.com/gin-gonic/gin"
	"github.com/weirgo/weir/middleware"
)

// Middleware limits what comes after it, on an engine, a group or a route. A
// refused request is aborted, and the Decision of one that passes is in the
// context of c.Request.
//
// For the decision the request has gin's pattern and path values, as
// c.FullPath and c.Param give them: the value of a wildcard begins with "/".
// Where no route matches, Pattern is empty and there are no values.
func Middleware(m *middleware.Middleware) gin.HandlerFunc {
	return func(c *gin.Context) {
		// In place, as http.ServeMux does it: a copy would hide the route from what
		// is around gin. A pattern from outside must not stay where gin has none, or
		// those who scan for paths get its budget and not that of the unmatched.
		c.Request.Pattern = c.FullPath()
		if c.Request.Pattern != "" { // else Params can hold what a failed search left
			for _, p := range c.Params {
				c.Request.SetPathValue(p.Key, p.Value)
			}
		}
		r, ok := m.Allow(c.Writer, c.Request)
		if !ok {
			c.Abort()
			// gin keeps the status back until there is a body, and the answer to HEAD
			// has none: a middleware around this one would take it for unwritten.
			c.Writer.WriteHeaderNow()
			return
		}
		c.Request = r
	}
}
