package middleware

import (
	"fmt"
	"net/http"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// strike is what the ban asks of r, whose charges under the rules stand in d.
func (m *Middleware) strike(r *http.Request, d *Decision) (store.Charge, error) {
	key := d.Charges[0].Key
	switch {
	case m.banKey != nil:
		var err error
		if key, err = m.banKey(r); err != nil {
			return store.Charge{}, err
		}
		if key == "" {
			return store.Charge{}, keyfunc.ErrNoKey
		}
		key = keyfunc.Bound(key)
	case key == "": // the first rule is left out; where it lacks its key, it has said so
		return store.Charge{}, keyfunc.ErrSkip
	}
	return store.Charge{Policy: m.ban, Key: key, Cost: 1, Mode: store.Strike}, nil
}

// bans tells whether the ban, whose result is r, refuses the request; refused is
// whether a rule does. The refusal that fills the ban is the ban's already: who
// waited only as long as the rule says would come back to a ban.
func bans(r *algorithms.Result, refused bool) bool {
	if refused && r.Limit > 0 && r.Remaining == 0 {
		r.Limited = true
	}
	return r.Limited
}

// checkBan reports mistakes in the ban, and whether the store can be asked about
// its policy. names has the index of the rule for each name.
func (c *Config) checkBan(names map[string]int, bad func(field string, value any, reason string)) bool {
	if c.Ban == nil {
		if c.BanKey != nil {
			bad("Ban", nil, "is missing, and BanKey is set; algorithms.Ban{…}.Policy makes one")
		}
		return false
	}
	if c.Ban.Algorithm() == nil {
		bad("Ban", "", "was not made by algorithms.NewPolicy")
		return false
	}
	if i, ok := names[c.Ban.Name()]; ok {
		bad("Ban", c.Ban.Name(), fmt.Sprintf("has the name of Rules[%d].Policy; the ban needs a name of its own", i))
		return false
	}
	return true
}
