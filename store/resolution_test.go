package store_test

import (
	"testing"
	"time"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
)

// coarse is a store that tells times in seconds.
type coarse struct{ store.Store }

func (coarse) Resolution() time.Duration { return time.Second }

func TestResolution(t *testing.T) {
	exact := memstore.New(memstore.Config{})
	for name, c := range map[string]struct {
		store.Store
		want time.Duration
	}{
		"memory":              {exact, time.Microsecond},
		"coarse":              {coarse{exact}, time.Second},
		"prefix":              {store.Prefix(coarse{exact}, "p"), time.Second},
		"sequential":          {store.Sequential(coarse{exact}), time.Second},
		"prefix of memory":    {store.Prefix(exact, "p"), time.Microsecond},
		"sequential, missing": {store.Sequential(nil), time.Microsecond},
		"none":                {nil, time.Microsecond},
	} {
		if got := store.Resolution(c.Store); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
