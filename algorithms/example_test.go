package algorithms_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirgo/weir/algorithms"
)

func ExampleParseLimit() {
	l, err := algorithms.ParseLimit("30/1m burst 15")
	fmt.Println(l, err)
	fmt.Println(l.Count, l.Period, l.Burst)
	_, err = algorithms.ParseLimit("0/1m")
	fmt.Println(err)
	// Output:
	// 30/1m burst 15 <nil>
	// 30 1m0s 15
	// weir: Limit.Count = 0: must be at least 1; to pass everything leave the rule out, to refuse everything answer so in the handler
}

// All mistakes come back at once.
func ExampleNewPolicy_mistakes() {
	_, err := algorithms.NewPolicy("per user", algorithms.GCRA{}, algorithms.Limit{Count: 5, Period: -time.Second})
	var mistake *algorithms.FieldError
	fmt.Println(errors.As(err, &mistake), mistake.Field)
	fmt.Println(err)
	// Output:
	// true Policy.Name
	// weir: Policy.Name = "per user": must be 1 to 64 ASCII letters, digits, '-', '_' or '.'
	// weir: Limit.Period = -1s: must be positive
}

// Sixteen at once, then one each two seconds: the example of redis-cell.
func ExampleResult_Cell() {
	p, err := algorithms.NewPolicy("example", algorithms.GCRA{}, algorithms.PerMinute(30).WithBurst(16))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now().UnixMicro()
	var state algorithms.State
	var r algorithms.Result
	for range 2 {
		state, r = p.Decide(nil, state, now, 1, 0)
		fmt.Println(r.Cell())
	}
	// Output:
	// [0 16 15 -1 2]
	// [0 16 14 -1 4]
}
