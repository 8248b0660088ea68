// Package registry reads images from registries (OCI distribution-spec 1.1). go-containerregistry asks, logs in and
// compares digests; what a registry may make it do is bounded here, below it.
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Scheme begins a reference that cannot be confused with a path; skopeo and Podman have the
// same (containers-transports(5)).
const Scheme = "docker://"

// Reference names an image in a registry.
type Reference struct{ named reference.Named }

// Host is the registry.
func (r Reference) Host() string { return reference.Domain(r.named) }

// String is the reference in full.
func (r Reference) String() string { return r.named.String() }

// Parse reads a reference. Behind the scheme, a registry that is not named is Docker Hub;
// without the scheme it must be named, as HOST.DOMAIN, HOST:PORT or localhost.
func Parse(text string) (Reference, error) {
	rest, explicit := strings.CutPrefix(text, Scheme)
	first, _, several := strings.Cut(rest, "/")
	isHost := several && (strings.ContainsAny(first, ".:") || first == "localhost")
	if !explicit && !isHost {
		return Reference{}, fmt.Errorf("%w: it names no registry", ErrReference)
	}
	named, err := reference.ParseDockerRef(rest)
	if err != nil {
		return Reference{}, fmt.Errorf("%w: %w", ErrReference, err)
	}
	return Reference{named}, nil
}

// ErrReference is the error of a word that is no reference.
var ErrReference = errors.New("not a reference of an image")

// Options are how a registry is reached.
type Options struct {
	// PlainHTTP is true where connections need not be encrypted. Those to the machine itself never are.
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
	ref    name.Reference
	puller *remote.Puller
	logins *logins
	// hangUp closes the connections that are not in use.
	hangUp func()
}

// Close closes the connections.
func (r *Repository) Close() { r.hangUp() }

// Open prepares to read an image. Nothing is sent yet.
func Open(ref Reference, o Options) (*Repository, error) {
	r := &Repository{logins: &logins{files: o.Logins, ref: ref}, hangUp: func() {}}
	g := newGuard(ref.Host(), o, func() { r.logins.asked.Store(true) })
	if g.next == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // The library documents it.
		transport.MaxResponseHeaderBytes = 256 << 10
		transport.DisableCompression = true // Digests are of what is sent.
		g.next, r.hangUp = transport, transport.CloseIdleConnections
	}
	var options []name.Option
	if g.plain {
		options = append(options, name.Insecure)
	}
	var err error
	if r.ref, err = name.ParseReference(ref.String(), options...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReference, err)
	}
	r.puller, err = remote.NewPuller(
		remote.WithTransport(g), remote.WithAuth(r.logins), remote.WithUserAgent("gpudoctor"),
		remote.WithRetryBackoff(remote.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 3}),
	)
	return r, err
}

// Resolve returns what the reference names: a manifest or an index.
func (r *Repository) Resolve(ctx context.Context) (v1.Descriptor, []byte, error) {
	return r.get(ctx, r.ref)
}

// Manifest returns a manifest or an index.
func (r *Repository) Manifest(ctx context.Context, digest v1.Hash) ([]byte, error) {
	_, raw, err := r.get(ctx, r.ref.Context().Digest(digest.String()))
	return raw, err
}

func (r *Repository) get(ctx context.Context, ref name.Reference) (v1.Descriptor, []byte, error) {
	asked := r.logins.asked.Load()
	got, err := r.puller.Get(ctx, ref)
	if err != nil && r.logins.asked.Load() != asked {
		got, err = r.puller.Get(ctx, ref) // It asks for a password only for some images.
	}
	if err != nil {
		return v1.Descriptor{}, nil, r.explain(ctx, err)
	}
	return got.Descriptor, got.Manifest, nil
}

// Blob returns a blob as a stream, which fails at its end if its digest is another.
func (r *Repository) Blob(ctx context.Context, digest v1.Hash) (io.ReadCloser, error) {
	l, err := r.puller.Layer(ctx, r.ref.Context().Digest(digest.String()))
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	body, err := l.Compressed()
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return body, nil
}
