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
)

// inAnyZone wants the answers not to depend on the time zone of the process. It
// asks a process for each, because the zone is read once, at the start.
func inAnyZone(t *testing.T) {
	if os.Getenv("WEIR_ZONE_CHILD") != "" {
		synctest.Test(t, func(*testing.T) { // by memstore's own clock
			_, offset := time.Now().Zone()
			fmt.Printf("offset=%d\n", offset)
			for _, a := range []algorithms.Algorithm{algorithms.FixedWindow{}, algorithms.GCRA{}} {
				h := counted(t, nil, a, per(10, 300*time.Second, 0)).Handler(ok)
				w := serve(h)
				for range 9 {
					w = serve(h)
				}
				refused := serve(h)
				fmt.Printf("%s %d %d retry=%s reset=%s\n", a.Name(), w.Code, refused.Code, refused.Header().Get("Retry-After"), refused.Header().Get("X-RateLimit-Reset"))
			}
		})
		return
	}
	for zone, offset := range map[string]int{"UTC": 0, "Europe/Vienna": 3600, "America/St_Johns": -12600} { // a bubble begins in January
		cmd := exec.Command(os.Args[0], "-test.run=^TestCases$/^HDR-06$")
		cmd.Env = append(os.Environ(), "WEIR_ZONE_CHILD=1", "TZ="+zone)
		out, err := cmd.CombinedOutput()
		want := fmt.Sprintf("offset=%d\nfixed-window 200 429 retry=300 reset=300\ngcra 200 429 retry=30 reset=300\n", offset)
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("TZ=%s: %v\n%s; want %s", zone, err, out, want)
		}
	}
}
