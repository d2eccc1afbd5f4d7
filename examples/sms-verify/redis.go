package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// What Redis may take where the URL does not say. A server that is away must be
// found out before the client loses patience; go-redis would wait 5 s to
// connect, five times.
const (
	redisDialTimeout = 500 * time.Millisecond
	redisReadTimeout = time.Second
	redisDials       = 1
)

// redisOptions are what may stand after the "?" of a URL. go-redis has more, and
// panics for the wrong values of some.
var redisOptions = []string{"addr", "db", "dial_timeout", "master_name", "password", "read_timeout", "username", "write_timeout"}

// parseRedis reads the value of a flag, -redis or -cell. What it returns makes a
// client, without connecting. An error tells no part of the value that can be a
// password.
func parseRedis(flag, value string) (connect func() redis.UniversalClient, err error) {
	u, err := url.Parse(value)
	if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		// The cause would quote what it stumbled over.
		return nil, redisError(flag, value, errors.New("is not a URL; in a password, special characters are written as %XX"))
	}
	for name := range maps.Keys(u.Query()) {
		if !slices.Contains(redisOptions, name) {
			return nil, redisError(flag, value, fmt.Errorf("the option %q is none of %s", name, strings.Join(redisOptions, ", ")))
		}
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "+")
	u.Scheme = scheme
	switch known := scheme == "redis" || scheme == "rediss"; {
	case known && kind == "":
		connect, err = singleClient(u)
	case known && kind == "cluster":
		connect, err = clusterClient(u)
	case known && kind == "sentinel":
		connect, err = sentinelClient(u)
	default:
		err = errors.New("must begin with redis://, redis+cluster:// or redis+sentinel://, or with rediss in the place of redis for TLS")
	}
	if err != nil {
		return nil, redisError(flag, value, err)
	}
	return connect, nil
}

// redisError names the flag and its value, without a password and without what
// comes after a "?", which may be one.
func redisError(flag, value string, reason error) error {
	shown := value
	if at := strings.LastIndex(value, "@"); at >= 0 {
		shown = "***" + value[at:]
		if scheme := strings.Index(value, "://"); scheme >= 0 && scheme < at {
			shown = value[:scheme] + "://" + shown
		}
	}
	shown, _, _ = strings.Cut(shown, "?")
	return fmt.Errorf("%s %q: %w", flag, shown, reason)
}

func singleClient(u *url.URL) (func() redis.UniversalClient, error) {
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true // else the deadlines of requests are ignored
	hurry(&o.DialTimeout, &o.ReadTimeout, &o.DialerRetries)
	return func() redis.UniversalClient { return redis.NewClient(o) }, nil
}

func clusterClient(u *url.URL) (func() redis.UniversalClient, error) {
	if db := strings.Trim(u.Path, "/"); db != "" && db != "0" {
		return nil, fmt.Errorf("a cluster has no database %q", db)
	}
	o, err := redis.ParseClusterURL(u.String())
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled = true
	hurry(&o.DialTimeout, &o.ReadTimeout, &o.DialerRetries)
	return func() redis.UniversalClient { return redis.NewClusterClient(o) }, nil
}

func sentinelClient(u *url.URL) (func() redis.UniversalClient, error) {
	o, err := redis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, err
	}
	if o.MasterName == "" {
		return nil, errors.New("must name the master that the sentinels watch: ?master_name=mymaster")
	}
	o.ContextTimeoutEnabled = true
	hurry(&o.DialTimeout, &o.ReadTimeout, &o.DialerRetries)
	return func() redis.UniversalClient { return redis.NewFailoverClient(o) }, nil
}

// hurry sets what the URL leaves to the client. The time to write is that to
// read.
func hurry(dial, read *time.Duration, dials *int) {
	if *dial == 0 {
		*dial = redisDialTimeout
	}
	if *read == 0 {
		*read = redisReadTimeout
	}
	*dials = redisDials
}

// redisStore keeps limits in Redis.
func redisStore(client redis.UniversalClient) (store.Store, error) {
	c := redisstore.Config{Prefix: "sms-verify:limit:"}
	if _, ok := client.(*redis.ClusterClient); ok {
		// A phone and an address lie on different servers of a cluster, and are one
		// decision here. With a tag all lie on one: that is enough for messages,
		// which cost money each, and keeps a refusal free. store.Sequential would
		// use all servers, but let requests for one phone see each other's halves,
		// and leave a phone charged for nothing if a process ends in between.
		c.Tag = "sms-verify"
	}
	return redisstore.New(client, c)
}
