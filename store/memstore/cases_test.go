package memstore_test

import (
	"testing"

	"github.com/weirgo/weir/internal/casetest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/memstore"
	"github.com/weirgo/weir/store/storetest"
)

func open(_ *testing.T, c *storetest.Clock) store.Store {
	return memstore.New(memstore.Config{Clock: c.Now})
}

func TestVectors(t *testing.T) { casetest.Vectors(t, open) }
