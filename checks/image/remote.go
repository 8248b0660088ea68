package image

import (
	"context"
	"encoding/json"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gpudoctor/gpudoctor/checks/image/registry"
)

// OpenRemote reads an image in a registry. Its layers are read as they come, and written
// nowhere.
func OpenRemote(ctx context.Context, ref registry.Reference, how registry.Options, o Options) (*Image, error) {
	st := &remoteStore{from: registry.Open(ref, how)}
	defer st.from.Close()
	top, raw, err := st.from.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	// The reference names one image or an index, as index.json of a layout may.
	index, err := json.Marshal(v1.Index{Manifests: []v1.Descriptor{top}})
	if err != nil {
		return nil, err
	}
	st.index, st.top, st.topDigest = index, raw, top.Digest.String()
	img, err := newScanner(o).layout(ctx, st, formRegistry)
	if err != nil {
		return nil, err
	}
	img.facts.Name = ref.String()
	return img, nil
}

// remoteStore is a registry.
type remoteStore struct {
	from *registry.Repository
	// index stands for index.json, top is what the reference names.
	index, top []byte
	topDigest  string
}

func (r *remoteStore) read(ctx context.Context, b blob) ([]byte, error) {
	switch {
	case b.name == indexFile:
		return r.index, nil
	case b.digest.String() == r.topDigest:
		return r.top, nil
	case isManifest(b.media):
		return r.from.Manifest(ctx, b.digest)
	}
	return r.from.Document(ctx, b.digest)
}

// isManifest reports whether a registry has a document among its manifests.
func isManifest(mediaType string) bool {
	return isIndex(mediaType) || mediaType == v1.MediaTypeImageManifest || mediaType == "application/vnd.docker.distribution.manifest.v2+json"
}

func (r *remoteStore) layer(ctx context.Context, b blob, s *scanner) (*layer, error) {
	body, err := r.from.Blob(ctx, b.digest, b.size)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // It was only read.
	return s.blob(ctx, b, body)
}
