package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// A node that sends a client to another one has not run the script. The other
// one is then asked, once, whatever happens there.
func TestClusterRedirects(t *testing.T) {
	kinds := []kind{
		{"cluster", clusterOfWires, 0, false},
		{"cluster without policies", plainCluster, 0, false},
		{"cluster's auto-pipeliner", clusterAutoPipeliner, 0, true},
	}
	cases := []struct {
		name, there string // fate at the node that is named
		made        int
		ok          bool
	}{
		{"passes", pass, 1, true},
		{"reply is late", hold, 1, false},
		{"cut before the reply", lose, 1, false},
		{"cut before the command", cut, 0, false},
		{"tries again", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", 0, false},
	}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			r := newRig(t)
			patient, hasty := r.open(t, k, never), r.open(t, k, readTimeout)
			for _, redirect := range []string{"MOVED", "ASK"} {
				for _, c := range cases {
					t.Run(redirect+"/"+c.name, func(t *testing.T) {
						r.meet(t, nil)
						r.wires[0].meet(always(fmt.Sprintf("-%s 1234 %s\r\n", redirect, r.wires[1].Addr)))
						r.wires[1].meet(unlessAsking(c.there))
						p, s := lasting(t, "redirected", 10), patient
						if c.there == hold {
							s = hasty
						}
						got, err := ask(t.Context(), s, t.Name(), p)
						if (err == nil) != c.ok || c.ok && got.Remaining != 9 {
							t.Errorf("got %+v, %v", got, err)
						}
						if here, there := r.wires[0].decisions(), r.wires[1].decisions(); here != 1 || there != 1 {
							t.Errorf("%d decisions here and %d there; want one each", here, there)
						}
						if asked := r.wires[1].count("asking"); asked > 0 != (redirect == "ASK") {
							t.Errorf("%d ASKING", asked)
						}
						if n := r.run(t); n != c.made {
							t.Errorf("%d scripts were run; want %d", n, c.made)
						}
						if n := r.charged(t, p, t.Name()); n != int64(c.made) {
							t.Errorf("%d units are charged; want %d", n, c.made)
						}
					})
				}
			}
		})
	}
}

// unlessAsking is one fate for all but ASKING: the server, which is in no
// cluster, does not know it.
func unlessAsking(what string) fate {
	return func(cmd []string) string {
		if strings.EqualFold(cmd[0], "asking") {
			return "+OK\r\n"
		}
		return what
	}
}

// What a node refuses it has not run: it is not asked again for that, nor is
// another. An endless chain of redirections ends.
func TestClusterRefuses(t *testing.T) {
	answers := map[string]int{ // commands for one call
		"-TRYAGAIN Multiple keys request during rehashing of slot": 1,
		"-CLUSTERDOWN The cluster is down":                         1,
		"-LOADING Redis is loading the dataset in memory":          1,
		"-MASTERDOWN Link with MASTER is down":                     1,
		"-ERR max number of clients reached":                       1,
		"-MOVED 1234 OTHER":                                        4, // MaxRedirects and one
		"-ASK 1234 OTHER":                                          4,
	}
	r := newRig(t)
	s := r.open(t, kind{open: clusterOfWires}, never)
	for answer, most := range answers {
		t.Run(answer[1:], func(t *testing.T) {
			r.meet(t, nil)
			for i, w := range r.wires {
				w.meet(unlessAsking(strings.ReplaceAll(answer, "OTHER", r.wires[1-i].Addr) + "\r\n"))
			}
			p := lasting(t, "refused", 10)
			prefix, _, _ := strings.Cut(answer[1:], " ")
			if _, err := ask(t.Context(), s, "k", p); !strings.Contains(fmt.Sprint(err), prefix) {
				t.Errorf("err = %v; want %s", err, prefix)
			}
			if n := r.decisions(); n != most {
				t.Errorf("%d commands; want %d", n, most)
			}
			if n := r.charged(t, p, "k"); n != 0 {
				t.Errorf("%d units are charged", n)
			}
		})
	}
}

// A fail-over cuts the connections to the old master. What was sent on them is
// not sent to the new one.
func TestFailover(t *testing.T) {
	r := newRig(t)
	s := r.open(t, kind{open: failoverClient}, never)
	r.meet(t, nil)
	r.wires[0].meet(always(hold))
	p := lasting(t, "failover", 10)
	failed := make(chan error)
	go func() {
		_, err := ask(t.Context(), s, "old", p)
		failed <- err
	}()
	<-r.wires[0].held
	r.master.Store(1)
	if got, err := ask(t.Context(), s, "new", p); err != nil || got.Remaining != 9 {
		t.Errorf("at the new master: %+v, %v", got, err)
	}
	if err := <-failed; err == nil {
		t.Error("the old master's reply never came, and there is no error")
	}
	if old, now := r.wires[0].decisions(), r.wires[1].decisions(); old != 1 || now != 1 {
		t.Errorf("%d decisions at the old master and %d at the new one; want one each", old, now)
	}
	if a, b := r.charged(t, p, "old"), r.charged(t, p, "new"); a != 1 || b != 1 {
		t.Errorf("%d and %d units are charged; want one each", a, b)
	}
}

// Whatever happens to commands and replies: what succeeds is charged once, and
// what fails at most once.
func TestChaos(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			r := newRig(t)
			s := r.open(t, k, readTimeout)
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(1, 2))
			r.meet(t, func(cmd []string) string {
				mu.Lock()
				defer mu.Unlock()
				other := r.wires[random.IntN(2)].Addr
				fates := []string{
					lose, lose, lose, cut, cut, hold, "-NOSCRIPT No matching script.\r\n", "-LOADING Redis is loading\r\n",
					"-READONLY You can't write against a read only replica.\r\n", "-TRYAGAIN Multiple keys\r\n",
					"-MOVED 1 " + other + "\r\n", "-ASK 1 " + other + "\r\n",
				}
				what := pass
				if random.IntN(3) == 0 {
					what = fates[random.IntN(len(fates))]
				}
				return unlessAsking(what)(cmd)
			})
			ps := some(t, 2)
			const takers, takes = 8, 15
			var errs [takers][takes]error
			var wg sync.WaitGroup
			for i := range takers {
				wg.Go(func() {
					for j := range takes {
						_, errs[i][j] = ask(t.Context(), s, fmt.Sprintf("%d-%d", i, j), ps[:1+j%2]...)
					}
				})
			}
			wg.Wait()
			r.meet(t, nil)
			made, failed := 0, 0
			for i := range errs {
				for j, err := range errs[i] {
					var n int64
					for _, p := range ps[:1+j%2] {
						n = r.charged(t, p, fmt.Sprintf("%d-%d", i, j))
						if n > 1 || err == nil && n != 1 {
							t.Errorf("%d units are charged; the error is %v", n, err)
						}
					}
					if err != nil {
						failed++
						made += int(n)
					}
				}
			}
			if failed == 0 || made == 0 || made == failed {
				t.Errorf("%d of %d takes failed, %d of them were made; want some of each", failed, takers*takes, made)
			}
			t.Logf("%d of %d takes failed, %d of them were made", failed, takers*takes, made)
		})
	}
}
