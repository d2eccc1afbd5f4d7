package cellstore_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

// FuzzReply has a server answer CL.THROTTLE by anything: any numbers, as many as it
// likes, some of them as other types. What is no answer is an error, and what seems
// to be one is a Result.
func FuzzReply(f *testing.F) {
	for i, n := range [][5]int64{
		{0, 5, 4, -1, 12}, {1, 5, 0, 12, 60}, {1, 5, 5, -1, 0}, {0, 5, 6, -1, 12}, {0, 5, -1, -1, 12}, {1, 5, 0, -2, 60}, {2, 5, 4, -1, 12}, {-1, 5, 4, -1, 12}, {0, 4, 4, -1, 12}, {0, 0, 0, 0, 0},
		{1, 5, 5, 0, 0}, {1, 5, 9, 3, -1}, {0, 5, 4, 0, 1 << 33}, {0, 5, 4, -1, 1 << 34}, {0, 5, 4, -1, math.MaxInt64}, {1, 5, 0, math.MaxInt64, 60}, {1, 5, 0, 1 << 34, 60}, {1, 5, 0, -1, 1 << 34}, {1, 5, 0, 1 << 33, 1 << 33}, {1, 5, 0, math.MaxInt64, math.MaxInt64}, {0, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64},
	} {
		for cost := range uint8(6) {
			f.Add(n[0], n[1], n[2], n[3], n[4], uint32(0), uint8(5), cost, "", "")
			f.Add(n[0], n[1], n[2], n[3], n[4], uint32(1)<<(3*(i%5)), uint8(5), cost, "5", "")
			f.Add(n[0], n[1], n[2], n[3], n[4], uint32(i)*977, uint8(i%8), cost, "x", "")
		}
	}
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), uint32(0), uint8(5), uint8(0), "", "ERR unknown command 'CL.THROTTLE', with args beginning with: 'k'")
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(0), uint32(0), uint8(5), uint8(0), "", "ERR Cell error: cannot parse integer from empty string")
	f.Fuzz(func(t *testing.T, limited, limit, remaining, retry, reset int64, types uint32, length, cost uint8, text, failure string) {
		numbers := []int64{limited, limit, remaining, retry, reset}
		var reply []any
		for i := range int(length % 8) {
			n := numbers[i%5]
			reply = append(reply, [...]any{n, n, n, text, float64(n), nil, []any{n}, n == 1}[types>>(3*i)%8])
		}
		server := &answering{reply: reply}
		if failure != "" {
			server.err = replyError(failure)
		}
		p := gcra(t, "p", algorithms.PerMinute(5))
		c := store.Charge{Policy: p, Key: "k", Cost: []int64{1, 0, 5, 6, math.MaxInt64, 1}[cost%6]}
		if cost%6 == 5 {
			c.Mode = store.Strike
		}
		results := make([]algorithms.Result, 1)
		if err := newStore(t, server).Take(t.Context(), []store.Charge{c}, results); err != nil {
			var mistake *algorithms.FieldError
			if errors.As(err, &mistake) {
				t.Errorf("%v is for the caller: %v", reply, err)
			}
			return
		}
		r := results[0]
		if len(reply) != 5 || failure != "" {
			t.Errorf("%v, %q is taken for an answer: %+v", reply, failure, r)
		}
		never := c.Mode == store.Enforce && c.Cost > 5
		if r.Limit != 5 || r.Remaining < 0 || r.Remaining > 5 || (r.RetryAfter == algorithms.Never) != never || r.RetryAfter < algorithms.Never || r.ResetAfter < 0 ||
			max(r.RetryAfter, r.ResetAfter) > 1<<53*time.Microsecond || r.Limited && r.RetryAfter == 0 || r.Limited && !never && r.Remaining >= max(1, c.Cost) && c.Mode == store.Enforce {
			t.Errorf("%v, to a cost of %d %v: %+v", reply, c.Cost, c.Mode, r)
		}
	})
}
