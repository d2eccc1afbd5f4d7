// Command sms-verify is an example server: it sends one-time codes to phones
// and checks them, and limits both by phone number and by address.
//
// A text message costs money and reaches a person, so each limit is decided
// before a message leaves, and all limits of a request are one decision: a
// request that one of them refuses is not counted by the others.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/keyfunc"
	"github.com/weirgo/weir/store/memstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes of the program.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// run is the program: it serves until ctx is done and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "sms-verify: %v\n", err)
		return exitUsage
	}
	if err := serve(ctx, opts, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "sms-verify: %v\n", err)
		return exitError
	}
	return exitOK
}

// options are what the flags say.
type options struct {
	addr   string
	region string
	trust  keyfunc.Trust
	redis  func() redis.UniversalClient // makes a client; nil without -redis
	secret []byte                       // of the codes in Redis
	cell   func() redis.UniversalClient // likewise, to a server with redis-cell; nil without -cell
}

// secretVariable is of the environment: a command line can be read by every user
// of a machine.
const secretVariable = "SMS_VERIFY_SECRET"

// minSecret is the shortest secret. Who can read Redis could find out a shorter
// one, and with it the codes.
const minSecret = 16

// parseFlags reads the command line. Help goes to stdout. An error names the
// flag, its value and the reason.
func parseFlags(args []string, stdout io.Writer) (options, error) {
	var opts options
	fs := flag.NewFlagSet("sms-verify", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is told once, by run, and not buried in the help
	fs.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "the `address` to listen on; port 0 takes a free one")
	opts.region = "US"
	fs.Func("region", "the `country` of numbers without a country code, such as DE; empty demands the code (default \"US\")", func(s string) error {
		opts.region = s
		return checkRegion(s)
	})
	redisURL := fs.String("redis", "", "keep limits and codes in the Redis at this `URL`, such as redis://localhost:6379/0, for several processes; "+
		secretVariable+" in the environment must have a secret that they share")
	cellURL := fs.String("cell", "", "decide the limits by address with the module redis-cell of the Redis at this `URL`; they are then no part of the decision on the phone, and nobody is banned")
	var proxies []string
	fs.Func("trusted-proxy", "`CIDRs` of proxies whose X-Forwarded-For is believed, comma separated; may be repeated", func(s string) error {
		cidrs := strings.Split(s, ",")
		for i := range cidrs {
			cidrs[i] = strings.TrimSpace(cidrs[i])
		}
		// Checked here so that the error names this value, not all of them.
		if _, err := keyfunc.TrustProxies(cidrs...); err != nil {
			return err
		}
		proxies = append(proxies, cidrs...)
		return nil
	})
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(stdout, "Usage: sms-verify [flags]")
			fs.SetOutput(stdout)
			fs.PrintDefaults()
		}
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: there are only flags", fs.Arg(0))
	}
	var err error
	if len(proxies) > 0 {
		opts.trust, err = keyfunc.TrustProxies(proxies...)
	}
	if *redisURL != "" { // not read by fs, whose errors show a value with its password
		var errRedis error
		opts.redis, errRedis = parseRedis("-redis", *redisURL)
		opts.secret = []byte(os.Getenv(secretVariable))
		if len(opts.secret) < minSecret {
			errRedis = errors.Join(errRedis, fmt.Errorf("-redis needs %s in the environment, the same for all processes: at least %d bytes, such as openssl rand -hex 32 gives; it has %d", secretVariable, minSecret, len(opts.secret)))
		}
		err = errors.Join(err, errRedis)
	}
	if *cellURL != "" {
		var errCell error
		opts.cell, errCell = parseRedis("-cell", *cellURL)
		err = errors.Join(err, errCell)
	}
	return opts, err
}

// What a connection may take, so that slow or idle clients do not hold it for
// ever. The time to write covers the handler, and so the time to send.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = readTimeout + sendTimeout + 5*time.Second
	idleTimeout     = time.Minute
	maxHeaderBytes  = 16 << 10
	shutdownTimeout = writeTimeout
)

// serve listens until ctx is done, and then lets the requests in hand finish.
func serve(ctx context.Context, opts options, stdout, stderr io.Writer) error {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	ln, err := net.Listen("tcp", opts.addr)
	if err != nil {
		return fmt.Errorf("-addr %q: %w", opts.addr, err)
	}
	c := config{
		store:   memstore.New(memstore.Config{}),
		codes:   &codes{newKey(), newMemoryVault(maxCodes, time.Now)},
		trust:   opts.trust,
		region:  opts.region,
		sender:  consoleSender{stdout},
		logger:  logger,
		baseURL: baseURL(ln.Addr()),
	}
	if opts.redis != nil {
		client := opts.redis()
		defer client.Close() // after the last request; there is nothing to lose
		c.codes = &codes{opts.secret, redisVault{client}}
		if c.store, err = redisStore(client); err != nil {
			return errors.Join(err, ln.Close())
		}
	}
	if opts.cell != nil {
		client := opts.cell()
		defer client.Close()
		if c.cell, err = cellStore(ctx, client, logger); err != nil {
			return errors.Join(err, ln.Close())
		}
	}
	s, err := newServer(c)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	fmt.Fprint(stdout, s.help())
	return serveOn(ctx, ln, &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	})
}

// serveOn runs srv on ln until ctx is done.
func serveOn(ctx context.Context, ln net.Listener, srv *http.Server) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		return fmt.Errorf("requests were cut off: %w", errors.Join(err, srv.Close()))
	}
	return nil
}

// baseURL is where a client on this machine finds a server that listens on a.
func baseURL(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return "http://" + a.String()
	}
	// "All addresses" is none that a client can connect to everywhere.
	return fmt.Sprintf("http://localhost:%d", tcp.Port)
}
