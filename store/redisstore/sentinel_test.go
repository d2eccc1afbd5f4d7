package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// A store survives the death of its master: errors, never a denial or a pass by
// mistake, until the replica has taken over, then limits again, all without a
// new client. Redis replicates behind the answer: charges that the replica had
// not seen are lost, so that after a fail-over more may pass than the limit
// says. It is at most one limit more.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	watched := redistest.Sentinel(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: watched.Name, SentinelAddrs: watched.Sentinels, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p, q := gcra(t, "p", algorithms.PerHour(5)), gcra(t, "q", algorithms.PerHour(50))
	if err := s.Validate(p, q); err != nil {
		t.Errorf("Validate: %v", err)
	}
	wantPasses(t, s, p, "k", true, true)
	if rs, err := takeGroup(s, "g", p, q); err != nil || rs[0].Remaining != 4 || rs[1].Remaining != 49 {
		t.Errorf("%+v, %v", rs, err)
	}
	// What is charged once both replicas have it all survives.
	if n, err := client.Wait(t.Context(), 2, 10*time.Second).Result(); err != nil || n != 2 {
		t.Fatalf("%d replicas, %v", n, err)
	}
	master := watched.Master(t)
	master.Stop()
	if r, err := store.Take(t.Context(), s, p, "k", 1); err == nil {
		t.Errorf("no master, and yet %+v", r)
	}
	watched.KillMaster(t)

	// The client hears of the new master a moment later: it can only be asked.
	var first algorithms.Result
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		first, err = store.Take(ctx, s, p, "k", 1)
		cancel()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a minute after the fail-over: %v", err)
		}
	}
	if first.Limited || first.Remaining != 2 {
		t.Errorf("the first charge on the new master: %+v", first)
	}
	wantPasses(t, s, p, "k", true, true, false)
	rs, err := takeGroup(s, "g", p, q)
	if err != nil || rs[0].Remaining != 3 || rs[1].Remaining != 48 {
		t.Errorf("a group on the new master: %+v, %v", rs, err)
	}
}
