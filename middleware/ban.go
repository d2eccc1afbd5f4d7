package middleware

import (
	"net/http"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store"
)

// strike is what the ban asks of r, whose charges under the rules stand in d.
func (s *settings) strike(r *http.Request, d *Decision) (store.Charge, error) {
	key := d.Charges[0].Key
	switch {
	case s.banKey != nil:
		var err error
		if key, err = s.banKey(r); err != nil {
			return store.Charge{}, err
		}
		if key == "" {
			return store.Charge{}, keyfunc.ErrNoKey
		}
		key = keyfunc.Bound(key)
	case key == "": // the first rule is left out; where it lacks its key, it has said so
		return store.Charge{}, keyfunc.ErrSkip
	}
	return store.Charge{Policy: s.ban, Key: key, Cost: 1, Mode: store.Strike}, nil
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
