package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirgo/weir/algorithms"
	"github.com/weirgo/weir/store"
)

var errReply = errors.New("weir: redis: the reply is not that of the script")

// decideAgain makes the answer to a single charge from the reply of single.lua:
// the server has decided on the state it found at its time, and Decide comes to
// the same result.
func decideAgain(c *store.Charge, cost int64, reply string) (algorithms.Result, error) {
	var words [2 + 9]int64
	n := 0
	for more := true; more; n++ {
		var text string
		text, reply, more = strings.Cut(reply, " ")
		word, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n == len(words) || word > maxNumber || word < -maxNumber {
			return algorithms.Result{}, errReply
		}
		words[n] = word
	}
	if n < 2 {
		return algorithms.Result{}, errReply
	}
	var room [9]int64
	_, r := c.Policy.Decide(room[:0], words[2:n], words[1], cost, c.AgeMicros())
	if r.Limited != (words[0] == 1) {
		return algorithms.Result{}, fmt.Errorf("weir: policy %s: the script of algorithm %s is not its twin", c.Policy.Name(), c.Policy.Algorithm().Name())
	}
	if !sound(r) {
		return algorithms.Result{}, errReply
	}
	return r, nil
}

// sound tells whether r is what an algorithm can answer. Of what somebody else has
// written to a key, which looks like a state and is none, more may be made than its
// numbers can hold.
func sound(r algorithms.Result) bool {
	return r.Limit >= 1 && r.Remaining >= 0 && r.Remaining <= r.Limit &&
		r.RetryAfter >= algorithms.Never && r.RetryAfter <= longest && r.ResetAfter >= 0 && r.ResetAfter <= longest
}

// longest is the longest time that a Result tells.
const longest = maxNumber * time.Microsecond

// answer is the five numbers that driver.lua gives for a charge.
func answer(n []int64) (algorithms.Result, error) {
	if n[0]|1 != 1 || max(n[3], n[4]) > maxNumber || min(n[3], n[4]) < -1 {
		return algorithms.Result{}, errReply
	}
	r := algorithms.Result{
		Limited:    n[0] == 1,
		Limit:      n[1],
		Remaining:  n[2],
		RetryAfter: time.Duration(n[3]) * time.Microsecond,
		ResetAfter: time.Duration(n[4]) * time.Microsecond,
	}
	if n[3] < 0 {
		r.RetryAfter = algorithms.Never
	}
	if !sound(r) {
		return algorithms.Result{}, errReply
	}
	return r, nil
}
