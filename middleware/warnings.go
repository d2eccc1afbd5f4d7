package middleware

import (
	"context"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirgo/weir/internal/notice"
	"github.com/weirgo/weir/keyfunc"
)

// advice is what a warning says, and what to do. docs/warnings.md has more.
var advice = map[notice.Code]struct{ message, remedy string }{
	notice.UntrustedHeaders: {
		"requests carry forwarding headers, and no proxy is trusted: all clients behind a proxy share its budget",
		"if there is a proxy, name it with keyfunc.TrustProxies; if there is none, somebody is trying to forge an address, in vain",
	},
	notice.OneKey: {
		"thousands of requests had the same key",
		"if the key should tell clients apart, see what it is made from: behind a proxy that is not named it is the proxy's address",
	},
	notice.EveryoneTrusted: {
		"Proxies.AnyPeer believes whoever connects: who reaches the server past its proxy has any address it likes",
		"name the proxies by CIDRs, or make sure that there is no other way in",
	},
	notice.BuiltInHandler: {
		"a middleware is made while a request is served, again and again: each counts on its own",
		"call middleware.New once, when the program starts, and keep what it returns",
	},
}

// warnings says once each what looks like a mistake.
type warnings struct {
	logger *slog.Logger
	notice func(notice.Code) // warn, made once
	said   sync.Map          // of notice.Code
	rules  []*majority       // nil where one key is what was asked for
	ended  atomic.Bool       // that one of rules has it has been said
}

func newWarnings(logger *slog.Logger, rules []Rule) *warnings {
	w := &warnings{logger: logger, rules: make([]*majority, len(rules))}
	w.notice = w.warn
	for i, rule := range rules {
		if !fewKeys(rule.Key) {
			w.rules[i] = &majority{seed: maphash.MakeSeed()}
		}
	}
	return w
}

func (w *warnings) warn(c notice.Code) {
	if _, again := w.said.LoadOrStore(c, true); again {
		return
	}
	logger := w.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(context.Background(), slog.LevelWarn, advice[c].message,
		slog.String("code", string(c)), slog.String("remedy", advice[c].remedy))
}

// count takes note of a key of rule i.
func (w *warnings) count(i int, key string) {
	if i >= len(w.rules) || w.rules[i] == nil || w.ended.Load() {
		return
	}
	if w.rules[i].sample(key) {
		w.ended.Store(true)
		w.warn(notice.OneKey)
	}
}

// fewKeys tells whether f has few keys on purpose.
func fewKeys(f keyfunc.Func) bool {
	code := reflect.ValueOf(f).Pointer()
	for _, few := range []keyfunc.Func{keyfunc.Const("x"), keyfunc.Route, keyfunc.Method, keyfunc.Host} {
		if reflect.ValueOf(few).Pointer() == code {
			return true
		}
	}
	return false
}

// majority finds out whether one key has most requests (Boyer and Moore's vote).
// It asks one in eight, as others would wait for its lock.
type majority struct {
	seed  maphash.Seed
	mu    sync.Mutex
	key   uint64
	votes int
}

// enough votes are about 4000 requests more with one key than with all others.
const enough = 512

func (m *majority) sample(key string) bool {
	if rand.Uint32()%8 != 0 || !m.mu.TryLock() {
		return false
	}
	defer m.mu.Unlock()
	switch hash := maphash.String(m.seed, key); {
	case m.votes == 0:
		m.key, m.votes = hash, 1
	case m.key == hash:
		m.votes++
	default:
		m.votes--
	}
	return m.votes >= enough
}

// sites counts, by the code that called New, the Middlewares that were made while
// a request was served.
var sites struct {
	sync.Mutex
	made map[uintptr]int
}

// builtInHandler warns at the second Middleware that one piece of code makes
// while it serves a request. The first may be one that is kept.
func (w *warnings) builtInHandler() {
	var pcs [64]uintptr
	callers := pcs[:runtime.Callers(3, pcs[:])] // from New's caller on
	frames := runtime.CallersFrames(callers)
	for {
		frame, more := frames.Next()
		if strings.HasSuffix(frame.Function, ".ServeHTTP") {
			break
		}
		if !more {
			return
		}
	}
	sites.Lock()
	if sites.made == nil {
		sites.made = map[uintptr]int{}
	}
	sites.made[callers[0]]++
	second := sites.made[callers[0]] == 2
	sites.Unlock()
	if second {
		w.warn(notice.BuiltInHandler)
	}
}
