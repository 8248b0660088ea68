package registry

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// guard sends the requests of go-containerregistry, also those that follow a redirect or log in.
type guard struct {
	next http.RoundTripper
	// plain is true where connections need not be encrypted, itself where the registry is on the machine itself.
	plain, itself bool
	silence       time.Duration
	// asked is called where a password is asked for.
	asked func()
}

func newGuard(hostport string, o Options, asked func()) *guard {
	host := strings.Trim(hostport, "[]")
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return &guard{next: o.transport, plain: o.PlainHTTP || isLoopback(host), itself: isItself(host), silence: o.Silence, asked: asked}
}

func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	at, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && at.Unmap().IsLoopback()
}

// isItself reports whether a host is the machine itself, or a link-local address, where clouds answer with the
// secrets of a machine. So may be what resembles an address: the C library takes 127.1 for one.
func isItself(host string) bool {
	host = strings.TrimSuffix(host, ".")
	at, err := netip.ParseAddr(host)
	if err != nil {
		_, notNumber := strconv.ParseUint(host[strings.LastIndexByte(host, '.')+1:], 0, 64)
		return isLoopback(host) || notNumber == nil
	}
	at = at.Unmap()
	return at.IsLoopback() || at.IsLinkLocalUnicast() || at.IsUnspecified()
}

// maxRedirects is how many redirects are followed: registries have one, to their storage.
const maxRedirects = 5

// check returns why a request is not sent.
func (g *guard) check(r *http.Request) error {
	redirects := 0
	for from := r; from.Response != nil; from = from.Response.Request {
		redirects++
	}
	switch {
	case redirects > maxRedirects:
		return fmt.Errorf("%w: it redirects more than %d times", ErrAnswer, maxRedirects)
	case r.URL.Scheme != "https" && !g.plain:
		return fmt.Errorf("%w: it leads to a connection that is not encrypted (%s)", ErrAnswer, r.URL.Host)
	case !g.itself && isItself(r.URL.Hostname()):
		return fmt.Errorf("%w: it leads to this machine or a link-local address (%s)", ErrAnswer, r.URL.Host)
	case r.URL.User != nil:
		return fmt.Errorf("%w: it leads to an address with a password", ErrAnswer)
	}
	return nil
}

// RoundTrip sends a request, unless it must not be sent.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := g.check(r); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	a := &answer{ctx: ctx, cancel: cancel, silence: g.silence, left: maxDocument}
	a.timer = time.AfterFunc(g.silence, func() { cancel(fmt.Errorf("%w for %s", ErrSilent, g.silence)) })
	got, err := g.next.RoundTrip(r.WithContext(ctx))
	a.timer.Stop()
	if err != nil {
		defer cancel(nil)
		return nil, a.cause(err)
	}
	if got.StatusCode == http.StatusUnauthorized {
		g.asked()
	}
	if isBlob(r) {
		a.left = math.MaxInt64
	}
	a.ReadCloser, got.Body = got.Body, a
	return got, nil
}

// isBlob reports whether a request is for a blob, whatever it was redirected to.
func isBlob(r *http.Request) bool {
	for r.Response != nil {
		r = r.Response.Request
	}
	return strings.Contains(r.URL.Path, "/blobs/")
}

// maxDocument bounds everything but blobs (distribution-spec: registries take manifests of 4 MiB).
const maxDocument = 4 << 20

// answer is what a registry sends. It ends where the registry is silent, and where a document is too large.
type answer struct {
	io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	silence time.Duration
	left    int64
}

func (a *answer) Read(p []byte) (int, error) {
	a.timer.Reset(a.silence)
	n, err := a.ReadCloser.Read(p)
	a.timer.Stop() // Who reads may take its time.
	if a.left -= int64(n); a.left < 0 {
		return n, fmt.Errorf("%w: a document of more than %d MiB", ErrAnswer, maxDocument>>20)
	}
	return n, a.cause(err)
}

// cause is why reading ended: an error, or what canceled it.
func (a *answer) cause(err error) error {
	if cause := context.Cause(a.ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (a *answer) Close() error {
	a.timer.Stop()
	a.cancel(nil)
	return a.ReadCloser.Close()
}
