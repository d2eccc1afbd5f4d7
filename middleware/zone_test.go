package middleware_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/middleware"
	"github.com/weirgo/weir/store/memstore"
)

// inAnyZone wants the answers not to depend on the time zone of the process. It
// asks a process for each, because the zone is read once, at the start.
func inAnyZone(t *testing.T) {
	if os.Getenv("WEIR_ZONE_CHILD") != "" {
		synctest.Test(t, func(t *testing.T) { // by memstore's own clock
			_, offset := time.Now().Zone()
			fmt.Printf("offset=%d\n", offset)
			for _, a := range []algorithms.Algorithm{algorithms.FixedWindow{}, algorithms.GCRA{}} {
				h := counted(t, nil, a, per(10, 300*time.Second, 0)).Handler(ok)
				w := serve(h)
				for range 9 {
					w = serve(h)
				}
				refused := serve(h)
				fmt.Printf("%s %d %d retry=%s reset=%s", a.Name(), w.Code, refused.Code, refused.Header().Get("Retry-After"), refused.Header().Get("X-RateLimit-Reset"))
				for _, as := range []middleware.ResetFormat{middleware.UnixSeconds, middleware.RFC3339} {
					w := serve(newMiddleware(t, middleware.Config{
						Store: memstore.New(memstore.Config{}), Headers: middleware.Headers{ResetAs: as},
						Rules: []middleware.Rule{with(t, "p", a, per(1, 300*time.Second, 0))},
					}).Handler(ok))
					fmt.Printf(" %s", w.Header().Get("X-RateLimit-Reset"))
				}
				fmt.Println()
			}
		})
		return
	}
	for zone, offset := range map[string]int{"UTC": 0, "Europe/Vienna": 3600, "America/St_Johns": -12600} { // a bubble begins in January
		cmd := exec.Command(os.Args[0], "-test.run=^TestCases$/^HDR-06$")
		cmd.Env = append(os.Environ(), "WEIR_ZONE_CHILD=1", "TZ="+zone)
		out, err := cmd.CombinedOutput()
		const at = " 946685100 2000-01-01T00:05:00Z\n" // when bubbles begin, and 300 s
		want := fmt.Sprintf("offset=%d\nfixed-window 200 429 retry=300 reset=300%sgcra 200 429 retry=30 reset=300%s", offset, at, at)
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("TZ=%s: %v\n%s; want %s", zone, err, out, want)
		}
	}
}
