package memstore_test

import (
	"testing"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func TestRun(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, c *storetest.Clock) store.Store {
		return memstore.New(memstore.Config{Clock: c.Now})
	}, storetest.Options{})
}
