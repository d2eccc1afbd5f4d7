package storetest

import (
	"strings"
	"testing"

	"github.com/weirgo/weir/store"
)

func TestExcept(t *testing.T) {
	for _, c := range []struct {
		except map[string]string
		wrong  string
	}{
		{nil, ""},
		{map[string]string{"look": "it can't"}, ""},
		{map[string]string{"look": "it can't", "loook": "it can't"}, "loook"},
		{map[string]string{"look": ""}, "look"},
	} {
		err := (&Options{Except: c.except}).misnamed()
		if (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v: %v", c.except, err)
		}
	}

	// Each check but those excepted opens a store.
	opened := 0
	t.Run("run", func(t *testing.T) {
		Run(t, func(_ *testing.T, c *Clock) store.Store {
			opened++
			return &safeModel{model: newModel(c)}
		}, Options{Steps: 10, Except: map[string]string{"look": "to see it skipped", "concurrent": "to see it skipped"}})
	})
	if want := len(checks) - 2; opened != want {
		t.Errorf("%d checks ran, want %d", opened, want)
	}
}
