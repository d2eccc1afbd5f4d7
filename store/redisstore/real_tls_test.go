package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirgo/weir/internal/redistest"
	"github.com/weirgo/weir/store"
	"github.com/weirgo/weir/store/redisstore"
)

// Over TLS all is as without. A client that does not trust the server, or that the
// server does not let in, gets failures of the store.
func TestTLS(t *testing.T) {
	t.Parallel()
	ours, others := newCA(t), newCA(t)
	year := time.Now().AddDate(1, 0, 0)
	files := ours.files(t, year)
	addr, node := startTLS(t, files)
	p, up := lasting(t, "p", 3), tlsStore(t, addr, &tls.Config{RootCAs: ours.pool})
	wantPasses(t, up, p, "k", true, true)
	before := node.Do(t, "DEBUG", "DIGEST")
	fails := func(name, says string, c *tls.Config) {
		t.Helper()
		s := tlsStore(t, addr, c)
		for range 2 {
			r, err := store.Take(t.Context(), s, p, personal, 1)
			if err == nil || !strings.Contains(err.Error(), says) || !store.IsFailure(t.Context(), err) || strings.Contains(err.Error(), personal) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
	}
	fails("another's CA", "certificate signed by unknown authority", &tls.Config{RootCAs: others.pool})
	fails("another's name", "not valid for any names", &tls.Config{RootCAs: ours.pool, ServerName: "example.com"})
	fails("no TLS", "", nil)
	node.Do(t, "CONFIG", "SET", "tls-auth-clients", "yes")
	fails("no certificate of its own", "", &tls.Config{RootCAs: ours.pool})
	fails("a certificate of another's CA", "", &tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{others.certificate(t, year)}})
	wantPasses(t, tlsStore(t, addr, &tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{ours.certificate(t, year)}}), p, "other", true)
	node.Do(t, "CONFIG", "SET", "tls-auth-clients", "no")
	node.Do(t, "DEL", "weir:{other}:"+p.ID())

	// Its certificate runs out, and nobody has made a new one.
	expired := ours.files(t, time.Now().Add(-time.Hour))
	node.Do(t, append([]any{"CONFIG", "SET"}, expired...)...)
	fails("expired", "certificate has expired", &tls.Config{RootCAs: ours.pool})
	if r := mustTake(t, up, p, "k", 0); r.Remaining != 1 {
		t.Errorf("by a connection that is up: %+v", r)
	}
	if after := node.Do(t, "DEBUG", "DIGEST"); after != before {
		t.Error("keys have changed")
	}
	s := tlsStore(t, addr, &tls.Config{RootCAs: ours.pool})
	if _, err := store.Take(t.Context(), s, p, "k", 1); err == nil {
		t.Error("expired: no error")
	}
	node.Do(t, append([]any{"CONFIG", "SET"}, files...)...)
	wantPasses(t, s, p, "k", true, false)
}

// startTLS starts a server that also listens for TLS.
func startTLS(t *testing.T, files []any) (addr string, node *redistest.Server) {
	t.Helper()
	node = redistest.Start(t, "--enable-debug-command", "yes", "--tls-auth-clients", "no")
	var err error
	for range 5 { // somebody else may take the port first
		l, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			t.Fatal(e)
		}
		addr = l.Addr().String()
		_ = l.Close()
		_, port, _ := net.SplitHostPort(addr)
		if err = node.Client(t).Do(t.Context(), append([]any{"CONFIG", "SET", "tls-port", port}, files...)...).Err(); err == nil {
			return addr, node
		}
	}
	t.Fatalf("no TLS: %v", err)
	return "", nil
}

func tlsStore(t *testing.T, addr string, c *tls.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(closing(t, redis.NewClient(&redis.Options{Addr: addr, TLSConfig: c, DialerRetries: 1, ContextTimeoutEnabled: true})), redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ca makes certificates.
type ca struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newCA(t *testing.T) *ca {
	t.Helper()
	c := &ca{key: newKey(t), pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(2, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &c.key.PublicKey, c.key)
	if err == nil {
		c.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.pool.AddCert(c.cert)
	return c
}

// certificate is one for 127.0.0.1, of a server or of a client.
func (c *ca) certificate(t *testing.T, until time.Time) tls.Certificate {
	t.Helper()
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().AddDate(0, 0, -1), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, c.cert, &key.PublicKey, c.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// files are the settings of a server that has such a certificate.
func (c *ca) files(t *testing.T, until time.Time) (settings []any) {
	t.Helper()
	dir, cert := t.TempDir(), c.certificate(t, until)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		setting, kind string
		der           []byte
	}{
		{"tls-cert-file", "CERTIFICATE", cert.Certificate[0]}, {"tls-key-file", "PRIVATE KEY", key}, {"tls-ca-cert-file", "CERTIFICATE", c.cert.Raw},
	} {
		name := filepath.Join(dir, f.setting)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			t.Fatal(err)
		}
		settings = append(settings, f.setting, name)
	}
	return settings
}
