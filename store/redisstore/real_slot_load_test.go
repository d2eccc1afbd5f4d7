package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
)

// A slot goes once around the cluster while many charge its keys: each decision
// is made once, and no limit is exceeded.
func slotMovesUnderLoad(t *testing.T, s spreadStore, nodes redistest.Nodes) {
	m := move(t, nodes, "{u}")
	const keys, units = 12, 1000
	p, q := lasting(t, "p", units), lasting(t, "q", units)
	type place struct {
		policy string
		key    int
	}
	var mu sync.Mutex
	told, passed, failed := map[place]map[int64]int{}, 0, 0
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for random := rand.New(rand.NewPCG(7, uint64(g))); ; {
				select {
				case <-stop:
					return
				default:
				}
				// Some keys have one policy only: a group of new keys has to wait.
				key, ps := random.IntN(keys), []*algorithms.Policy{p, q}
				if key%2 == 0 || random.IntN(3) == 0 {
					ps = ps[:1]
				}
				rs, err := takeGroup(s, fmt.Sprint(key), ps...)
				mu.Lock()
				switch {
				case err == nil:
					refused := slices.ContainsFunc(rs, func(r algorithms.Result) bool { return r.Limited })
					for i, r := range rs {
						if at := (place{ps[i].Name(), key}); !refused {
							if told[at] == nil {
								told[at] = map[int64]int{}
							}
							told[at][r.Remaining]++
						}
					}
					passed++
				case redis.HasErrorPrefix(err, "TRYAGAIN ") && store.IsFailure(t.Context(), err) && len(ps) == 2:
					failed++
				default:
					t.Errorf("%d policies: %v", len(ps), err)
				}
				mu.Unlock()
			}
		})
	}
	goesOn := func(count *int) {
		t.Helper()
		mu.Lock()
		enough := *count + 20
		mu.Unlock()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			n := *count
			mu.Unlock()
			if n >= enough {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d calls in 30 s, want %d", n, enough)
			}
		}
	}
	for range nodes {
		goesOn(&passed)
		m.begin()
		// Those of one policy first: in the middle all groups are split.
		for _, policy := range []string{":p:", ":q:"} {
			for i, name := range m.keys() {
				if strings.Contains(name, policy) {
					m.migrate(name)
				}
				if i%4 == 0 {
					goesOn(&passed)
				}
			}
			if policy == ":p:" {
				goesOn(&failed)
			}
		}
		m.end()
	}
	goesOn(&passed)
	close(stop)
	wg.Wait()
	for at, numbers := range told {
		policy := p
		if at.policy == "q" {
			policy = q
		}
		for n, times := range numbers {
			if times != 1 {
				t.Errorf("%v: %d calls were told that %d remain", at, times, n)
			}
		}
		look := mustTake(t, s, policy, fmt.Sprint(at.key), 0)
		if charged := int(units - look.Remaining); charged != len(numbers) {
			t.Errorf("%v: %d units are charged, %d calls were told so", at, charged, len(numbers))
		}
	}
	t.Logf("%d calls passed or were refused, %d failed", passed, failed)
}
