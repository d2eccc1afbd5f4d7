package middleware_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirgo/weir/store/storetest"
)

// The answers do not depend on the time zone of the process.
func TestTimeZone(t *testing.T) {
	if os.Getenv("WEIR_ZONE_CHILD") != "" {
		w := serve(limiter(t, storetest.NewClock(), per(1, 300*time.Second, 0)).Handler(ok))
		fmt.Printf("reset=%s\n", w.Header().Get("X-RateLimit-Reset"))
		return
	}
	for _, zone := range []string{"UTC", "Europe/Vienna", "America/St_Johns"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTimeZone$")
		cmd.Env = append(os.Environ(), "WEIR_ZONE_CHILD=1", "TZ="+zone)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "reset=300\n") {
			t.Errorf("TZ=%s: %v\n%s", zone, err, out)
		}
	}
}
