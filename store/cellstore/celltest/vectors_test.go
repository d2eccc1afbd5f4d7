package celltest_test

import (
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

//go:embed testdata
var vectors embed.FS

func load(t *testing.T, name string, into any) {
	t.Helper()
	data, err := vectors.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

type scenario struct {
	Name    string
	StartNS int64 `json:"start_unix_ns"`
	Steps   []struct {
		AtMS     int64 `json:"at_ms"`
		AtNS     int64 `json:"at_ns"`
		Key      string
		MaxBurst int64 `json:"max_burst"`
		Count    int64
		PeriodS  int64 `json:"period_s"`
		Quantity *int64
		Reply    [5]int64
		State    *struct {
			TAT int64 `json:"tat_ns"`
			TTL int64 `json:"ttl_ms"`
		} `json:"state_after"`
	}
}

// The answers of the module, captured at the real time, and at a time that was set
// to the nanosecond, there with what the keys held.
func TestVectors(t *testing.T) {
	t.Parallel()
	for _, file := range []struct {
		name             string
		scenarios, steps int
		state            bool
	}{
		{"redis-cell.json", 62, 359, false},
		{"redis-cell-exact.json", 108, 628, true},
	} {
		var all struct{ Scenarios []scenario }
		load(t, file.name, &all)
		steps := 0
		for _, s := range all.Scenarios {
			steps += len(s.Steps)
			t.Run(file.name+"/"+s.Name, func(t *testing.T) { s.replay(t, file.state) })
		}
		if len(all.Scenarios) != file.scenarios || steps != file.steps {
			t.Errorf("%s: %d scenarios, %d steps; want %d and %d", file.name, len(all.Scenarios), steps, file.scenarios, file.steps)
		}
	}
}

func (s scenario) replay(t *testing.T, state bool) {
	w := start(t)
	begin := epoch
	if s.StartNS != 0 {
		begin = time.Unix(0, s.StartNS)
	}
	c := w.dial(t)
	for i, step := range s.Steps {
		w.SetTime(begin.Add(time.Duration(step.AtMS)*time.Millisecond + time.Duration(step.AtNS)))
		args := []string{"CL.THROTTLE", step.Key, itoa(step.MaxBurst), itoa(step.Count), itoa(step.PeriodS)}
		if step.Quantity != nil {
			args = append(args, itoa(*step.Quantity))
		}
		where := fmt.Sprintf("step %d, %v", i+1, args)
		if got, want := c.do(t, args...), answer(step.Reply); got != want {
			t.Errorf("%s: %q, want %q", where, got, want)
		}
		if !state {
			continue
		}
		value, ttl := "$-1\r\n", int64(-2)
		if step.State != nil {
			value, ttl = bulk(itoa(begin.UnixNano()+step.State.TAT)), step.State.TTL
		}
		if got := c.do(t, "GET", step.Key); got != value {
			t.Errorf("%s: the key holds %q, want %q", where, got, value)
		}
		if got := c.do(t, "PTTL", step.Key); got != integer(ttl) {
			t.Errorf("%s: the key has %q ms left, want %d", where, got, ttl)
		}
	}
}

// What the module refuses, and what it takes although it looks strange.
func TestOddInput(t *testing.T) {
	t.Parallel()
	var all struct {
		Errors []struct {
			Args     []string
			Error    string
			KeyAfter string `json:"key_after"`
		}
		Odd []struct {
			Args     []string
			Reply    [5]int64
			KeyAfter string `json:"key_after"`
		} `json:"accepted_odd"`
	}
	load(t, "redis-cell-errors.json", &all)
	if len(all.Errors) != 53 || len(all.Odd) != 31 {
		t.Errorf("%d errors, %d odd inputs; want 53 and 31", len(all.Errors), len(all.Odd))
	}
	check := func(args []string, want, after string) {
		t.Helper()
		w := start(t)
		c := w.dial(t)
		if got := c.do(t, args...); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
		// The real server's clock went on.
		w.SetTime(epoch.Add(2 * time.Millisecond))
		key, ttl := "", ""
		if len(args) > 1 {
			key = args[1]
			ttl = c.do(t, "PTTL", key)
		}
		keys := "*1\r\n" + bulk(key)
		switch after {
		case "none":
			keys, ttl = "*0\r\n", ""
		case "left without expiry":
			if ttl != integer(-1) {
				t.Errorf("%q leaves a key with %q ms to live, want -1", args, ttl)
			}
		case "with expiry":
			if left, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(ttl, ":")), 10, 64); err != nil || left <= 0 {
				t.Errorf("%q leaves a key with %q ms to live, want some", args, ttl)
			}
		default:
			t.Errorf("%q: what is %q?", args, after)
		}
		if got := c.do(t, "KEYS", "*"); got != keys {
			t.Errorf("%q leaves the keys %q, want %q", args, got, keys)
		}
	}
	for _, v := range all.Errors {
		check(v.Args, "-"+v.Error+"\r\n", v.KeyAfter)
	}
	for _, v := range all.Odd {
		check(v.Args, answer(v.Reply), v.KeyAfter)
	}
}

// What ends the whole server.
func TestAborts(t *testing.T) {
	t.Parallel()
	var all struct {
		Aborts []struct {
			Case  string
			Setup [][]string
			Args  []string
			Lost  bool `json:"connection_lost"`
		} `json:"server_aborts"`
	}
	load(t, "redis-cell-errors.json", &all)
	if len(all.Aborts) != 11 {
		t.Errorf("%d inputs, want 11", len(all.Aborts))
	}
	for _, v := range all.Aborts {
		if !v.Lost {
			t.Errorf("%s: no connection is lost", v.Case)
		}
		for i, arg := range v.Args {
			if digits, ok := strings.CutPrefix(arg, "hex:"); ok {
				raw, err := hex.DecodeString(digits)
				if err != nil {
					t.Fatal(err)
				}
				v.Args[i] = string(raw)
			}
		}
		t.Run(v.Case, func(t *testing.T) {
			w := start(t)
			w.aborts(t, v.Setup, v.Args)
		})
	}
}
