// Package registry reads images from registries (OCI distribution-spec 1.1). It is the only
// part of the program that opens a connection. What a registry sends is not trusted: the
// caller compares its digest, and its size is bounded here.
//
// oras-go logs in and keeps passwords from other hosts (package auth); its package remote,
// which can also write to registries, would make the program 130 KB larger.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	oras "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Scheme begins a reference that cannot be confused with a path; skopeo and Podman have the
// same (containers-transports(5)).
const Scheme = "docker://"

// Reference names an image in a registry.
type Reference struct{ ref oras.Reference }

// Host is the registry.
func (r Reference) Host() string { return r.ref.Registry }

// String is the reference in full.
func (r Reference) String() string {
	ref := r.ref
	ref.Reference = ref.ReferenceOrDefault()
	return ref.String()
}

// Parse reads a reference. Behind the scheme, a registry that is not named is Docker Hub;
// without the scheme it must be named, as HOST.DOMAIN, HOST:PORT or localhost.
func Parse(text string) (Reference, error) {
	name, explicit := strings.CutPrefix(text, Scheme)
	first, _, several := strings.Cut(name, "/")
	named := several && (strings.ContainsAny(first, ".:") || first == "localhost")
	switch {
	case !named && !explicit:
		return Reference{}, fmt.Errorf("%w: it names no registry", ErrReference)
	case !named:
		name = hub + "/" + name
	case first == "index.docker.io":
		name = hub + strings.TrimPrefix(name, first)
	}
	if rest, ok := strings.CutPrefix(name, hub+"/"); ok && !strings.Contains(rest, "/") {
		name = hub + "/library/" + rest
	}
	ref, err := oras.ParseReference(name)
	if err == nil && !hostName.MatchString(ref.Registry) {
		err = fmt.Errorf("%.80q is no host", ref.Registry)
	}
	if err != nil {
		return Reference{}, fmt.Errorf("%w: %w", ErrReference, err)
	}
	return Reference{ref}, nil
}

// hostName is how a registry is called: a host or an address, with or without a port.
var hostName = lazy.New(`^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)

// ErrReference is the error of a word that is no reference.
var ErrReference = errors.New("not a reference of an image")

// hub is Docker Hub, which a reference need not name.
const hub = "docker.io"

// Options are how a registry is reached.
type Options struct {
	// PlainHTTP is true where connections need not be encrypted. Those to the machine
	// itself never are.
	PlainHTTP bool
	// Silence is for how long a registry may send nothing.
	Silence time.Duration
	// Logins are the files that hold passwords, in the order in which they count.
	Logins []string
	// transport stands for the network in tests.
	transport http.RoundTripper
}

// Repository is where an image is.
type Repository struct {
	client *auth.Client
	// base is the address below which the manifests and blobs of the image are.
	base    string
	ref     Reference
	logins  *logins
	silence time.Duration
	// hangUp closes the connections that are not in use.
	hangUp func()
}

// Close closes the connections.
func (r *Repository) Close() { r.hangUp() }

// Open prepares to read an image. Nothing is sent yet.
func Open(ref Reference, o Options) *Repository {
	host := hostOf(ref.Host())
	itself := isItself(host)
	r := &Repository{ref: ref, silence: o.Silence, logins: &logins{files: o.Logins, ref: ref}, hangUp: func() {}}
	again := retry.NewTransport(o.transport)
	if o.transport == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // The library documents it.
		transport.MaxResponseHeaderBytes = 256 << 10
		transport.DisableCompression = true // Digests are of what is sent.
		again.Base, r.hangUp = transport, transport.CloseIdleConnections
	}
	again.Policy = func() retry.Policy { return &retries }
	scheme := "https"
	if o.PlainHTTP || isLoopback(host) {
		scheme = "http"
	}
	r.base = scheme + "://" + ref.ref.Host() + "/v2/" + ref.ref.Repository + "/"
	r.client = &auth.Client{
		Client:     &http.Client{Transport: again, CheckRedirect: checkRedirect(itself)},
		Header:     http.Header{"User-Agent": {"gpudoctor"}},
		Credential: r.logins.credential,
		Cache:      auth.NewCache(),
	}
	return r
}

// retries are for a registry that is busy for a moment.
var retries = retry.GenericPolicy{
	Retryable: retry.DefaultPredicate, Backoff: retry.DefaultBackoff, MinWait: 200 * time.Millisecond, MaxWait: 3 * time.Second, MaxRetry: 2,
}

// hostOf is a host without its port.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// isLoopback reports whether a host is the machine itself.
func isLoopback(host string) bool {
	at, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && at.Unmap().IsLoopback()
}

// isItself reports whether a host is the machine itself, or a link-local address, where
// clouds answer with the secrets of a machine.
func isItself(host string) bool {
	at, err := netip.ParseAddr(host)
	at = at.Unmap()
	return isLoopback(host) || err == nil && (at.IsLinkLocalUnicast() || at.IsUnspecified())
}

// errRedirect is the error of a redirect that is not followed.
var errRedirect = errors.New("the registry redirects")

// maxRedirects is how many redirects are followed: registries have one, to their storage.
const maxRedirects = 5

// checkRedirect follows a redirect to another host, but not to one without encryption, and
// not from elsewhere to the machine itself. The password is not sent along: package auth
// takes it out where the host or the port is another.
func checkRedirect(itself bool) func(*http.Request, []*http.Request) error {
	return func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("%w more than %d times", errRedirect, maxRedirects)
		case to.URL.Scheme != "https" && via[0].URL.Scheme == "https":
			return fmt.Errorf("%w to a connection that is not encrypted (%s)", errRedirect, to.URL.Host)
		case !itself && isItself(to.URL.Hostname()):
			return fmt.Errorf("%w to this machine or a link-local address (%s)", errRedirect, to.URL.Host)
		case to.URL.User != nil:
			return fmt.Errorf("%w to an address with a password", errRedirect)
		}
		return nil
	}
}

// maxDocument bounds a manifest (distribution-spec: registries take manifests of 4 MiB) and a
// configuration.
const maxDocument = 4 << 20

// manifests are the media types of manifests and indexes, of OCI and of Docker.
const manifests = v1.MediaTypeImageIndex + "," + v1.MediaTypeImageManifest +
	",application/vnd.docker.distribution.manifest.list.v2+json,application/vnd.docker.distribution.manifest.v2+json"

// Resolve returns what the reference names: a manifest or an index. Its digest is that of
// the reference, or else that of the answer.
func (r *Repository) Resolve(ctx context.Context) (v1.Descriptor, []byte, error) {
	var d v1.Descriptor
	raw, err := r.document(ctx, "manifests/"+r.ref.ref.ReferenceOrDefault(), func(header http.Header) error {
		var err error
		d.MediaType, _, err = mime.ParseMediaType(header.Get("Content-Type"))
		return err
	})
	if err != nil {
		return d, nil, err
	}
	d.Size = int64(len(raw))
	if d.Digest, err = r.ref.ref.Digest(); err != nil {
		d.Digest = digest.FromBytes(raw)
	}
	return d, raw, nil
}

// Manifest returns a manifest or an index.
func (r *Repository) Manifest(ctx context.Context, d digest.Digest) ([]byte, error) {
	return r.document(ctx, "manifests/"+d.String(), nil)
}

// Document returns a small blob.
func (r *Repository) Document(ctx context.Context, d digest.Digest) ([]byte, error) {
	return r.document(ctx, "blobs/"+d.String(), nil)
}

// Blob returns a blob as a stream, of at most one byte more than its size.
func (r *Repository) Blob(ctx context.Context, d digest.Digest, size int64) (io.ReadCloser, error) {
	return r.get(ctx, "blobs/"+d.String(), size, nil)
}

func (r *Repository) document(ctx context.Context, at string, look func(http.Header) error) ([]byte, error) {
	body, err := r.get(ctx, at, maxDocument, look)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // It was only read.
	raw, err := io.ReadAll(body)
	if err == nil && len(raw) > maxDocument {
		err = fmt.Errorf("%w: a document of more than %d MiB", ErrAnswer, maxDocument>>20)
	}
	return raw, err
}

// get asks for what is at an address of the repository, and looks at the head of the answer.
// At most one byte more than size is read. It ends where the registry is silent.
func (r *Repository) get(ctx context.Context, at string, size int64, look func(http.Header) error) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(r.silence, func() { cancel(ErrSilent) })
	body, err := r.send(ctx, at, look)
	timer.Stop()
	if err != nil {
		err = r.explain(ctx, err)
		cancel(nil)
		return nil, err
	}
	return &answer{ctx: ctx, cancel: cancel, timer: timer, r: r, from: io.LimitReader(body, size+1), body: body}, nil
}

func (r *Repository) send(ctx context.Context, at string, look func(http.Header) error) (io.ReadCloser, error) {
	ctx = auth.AppendRepositoryScope(ctx, r.ref.ref, auth.ActionPull)
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+at, nil)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(at, "manifests/") {
		ask.Header.Set("Accept", manifests)
	}
	got, err := r.client.Do(ask)
	if err != nil {
		return nil, err
	}
	if got.StatusCode != http.StatusOK {
		err = refusal(got)
	} else if look != nil {
		err = look(got.Header)
	}
	if err != nil {
		_ = got.Body.Close() // Another error is returned.
		return nil, err
	}
	return got.Body, nil
}

// answer is what a registry sends.
type answer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	r      *Repository
	from   io.Reader
	body   io.Closer
}

func (a *answer) Read(p []byte) (int, error) {
	a.timer.Reset(a.r.silence)
	n, err := a.from.Read(p)
	a.timer.Stop() // Who reads may take its time.
	if err != nil && !errors.Is(err, io.EOF) {
		err = a.r.explain(a.ctx, err)
	}
	return n, err
}

func (a *answer) Close() error {
	a.timer.Stop()
	a.cancel(nil)
	return a.body.Close()
}
