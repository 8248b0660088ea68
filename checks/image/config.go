package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

type configuration struct {
	form, name string
	config     v1.ConfigFile
	layers     []blob
}

func (s *scanner) layout(ctx context.Context, st store, form string) (*Image, error) {
	if form == formOCI {
		var saved tarball.Manifest
		err := decode(ctx, st, "manifest.json", named("manifest.json"), &saved)
		if !errors.Is(err, errNoBlob) {
			return s.saved(ctx, st, saved, err)
		}
	}
	var index v1.IndexManifest
	if err := decode(ctx, st, "index", named("index.json"), &index); err != nil {
		return nil, err
	}
	return s.indexed(ctx, st, form, index.Manifests)
}

// saved reads the image that manifest.json of docker save describes (moby image/tarexport/save.go).
func (s *scanner) saved(ctx context.Context, st store, all tarball.Manifest, err error) (*Image, error) {
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, errors.New("manifest.json names no image")
	case len(all) > 1:
		return nil, ErrSeveral
	}
	c := &configuration{form: formDocker}
	if len(all[0].RepoTags) > 0 {
		c.name = all[0].RepoTags[0]
	}
	for _, name := range all[0].Layers {
		c.layers = append(c.layers, named(name))
	}
	return s.configured(ctx, st, c, named(all[0].Config))
}

// indexed reads one of the images that an index names.
func (s *scanner) indexed(ctx context.Context, st store, form string, manifests []v1.Descriptor) (*Image, error) {
	found, err := candidates(ctx, st, manifests, 1)
	if err != nil {
		return nil, err
	}
	d, err := choose(found, s.platform)
	if err != nil {
		return nil, err
	}
	var m v1.Manifest
	if err := decode(ctx, st, "manifest", described(d), &m); err != nil {
		return nil, err
	}
	if m.SchemaVersion != 2 {
		return nil, fmt.Errorf("a manifest of schema %d, which is not supported", m.SchemaVersion)
	}
	if !strings.Contains(string(m.Config.MediaType), ".image.") {
		return nil, fmt.Errorf("%w: its configuration has the media type %.80q", ErrNotImage, m.Config.MediaType)
	}
	c := &configuration{form: form, name: d.Annotations["org.opencontainers.image.ref.name"]}
	for i, l := range m.Layers {
		if err := supported(string(l.MediaType)); err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		c.layers = append(c.layers, described(l))
	}
	return s.configured(ctx, st, c, described(m.Config))
}

func (s *scanner) configured(ctx context.Context, st store, c *configuration, at blob) (*Image, error) {
	if err := decode(ctx, st, "configuration", at, &c.config); err != nil {
		return nil, err
	}
	if c.config.OS != "" && c.config.OS != "linux" {
		return nil, fmt.Errorf("an image for %s, not for Linux", escape.Printable(c.config.OS, maxShown))
	}
	if !s.platform.takes(c.config.Architecture) {
		return nil, fmt.Errorf("%w for %s: it is for %s", ErrPlatform, s.platform, platformOf(c.config.Platform()))
	}
	s.conf = confFile(c.config.Config.Env)
	return s.fromLayers(ctx, st, c)
}

func confFile(env []string) string {
	for _, set := range slices.Backward(env) {
		if file, ok := strings.CutPrefix(set, "NCCL_CONF_FILE="); ok {
			return path.Clean(file)
		}
	}
	return ""
}

func supported(mediaType string) error {
	switch {
	case strings.HasSuffix(mediaType, "+encrypted"):
		return ErrEncrypted
	case strings.Contains(mediaType, ".layer.") && strings.Contains(mediaType, "tar"),
		strings.HasPrefix(mediaType, "application/vnd.docker.image.rootfs.diff.tar"):
		return nil
	}
	return fmt.Errorf("the media type %.80q is not supported", mediaType)
}

// maxDepth is how many indexes may lie in each other.
const maxDepth = 3

// candidates are the manifests that an index names, and those of the indexes in it.
func candidates(ctx context.Context, st store, manifests []v1.Descriptor, depth int) ([]v1.Descriptor, error) {
	if depth > maxDepth {
		return nil, errors.New("too many indexes in each other")
	}
	var all []v1.Descriptor
	for _, d := range manifests {
		switch {
		case d.Platform != nil && d.Platform.OS == "unknown": // BuildKit's attestations.
		case d.MediaType.IsIndex():
			var inner v1.IndexManifest
			if err := decode(ctx, st, "index", described(d), &inner); err != nil {
				return nil, err
			}
			found, err := candidates(ctx, st, inner.Manifests, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		default:
			all = append(all, d)
		}
	}
	return all, nil
}

// digest is how a layer is called: by its blob, or else by its content.
func (c *configuration) digest(i int) string {
	if d := c.layers[i].Digest; d != (v1.Hash{}) {
		return d.String()
	}
	if ids := c.config.RootFS.DiffIDs; i < len(ids) {
		return ids[i].String()
	}
	return ""
}

const maxCommand = 200

// command is what made a layer, as the history has it.
func (c *configuration) command(i int) string {
	for _, h := range c.config.History {
		if h.EmptyLayer {
			continue
		}
		if i == 0 {
			return commandWords(h.CreatedBy)
		}
		i--
	}
	return ""
}

// commandWords removes what Docker's classic builder and BuildKit write around a command.
func commandWords(by string) string {
	words := strings.Join(strings.Fields(by), " ")
	words = strings.TrimSuffix(words, " # buildkit")
	if rest, ok := strings.CutPrefix(words, "/bin/sh -c #(nop) "); ok {
		words = rest
	} else if rest, ok := strings.CutPrefix(words, "/bin/sh -c "); ok {
		words = "RUN " + rest
	}
	return escape.Printable(strings.Replace(words, "RUN /bin/sh -c ", "RUN ", 1), maxCommand)
}

func (c *configuration) facts() *facts.ImageFacts {
	f := &facts.ImageFacts{
		Form: c.form, Name: escape.Printable(c.name, maxShown), Environment: "configuration",
		User: escape.Printable(c.config.Config.User, maxShown),
	}
	if c.config.OS != "" || c.config.Architecture != "" {
		f.Platform = escape.Printable(c.config.OS+"/"+c.config.Architecture, maxShown)
	}
	return f
}

// The files of an image that enroot unpacked (its hooks write them, src/docker.sh).
const (
	enrootStart       = "/etc/rc"
	enrootEnvironment = "/etc/environment"
)

// environmentOf reads the variables of an unpacked image; from is empty if they are unknown.
func environmentOf(m *host.Memory) (env []string, from string) {
	raw, err := m.ReadFile(enrootEnvironment, maxKeptBytes)
	if _, noStart := m.Stat(enrootStart); err != nil || noStart != nil {
		return nil, ""
	}
	for line := range strings.Lines(string(raw)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if ok && !strings.ContainsAny(name, " #\t") {
			env = append(env, name+"="+strings.Trim(value, `"'`))
		}
	}
	return env, "enroot"
}

// userID is the number of the user that an image runs as; root's where none is named. Another name is not
// looked up: the user only decides in whose home a file of NCCL is looked for.
func userID(user string) int {
	const nobody = 65534
	name, _, _ := strings.Cut(user, ":")
	id, err := strconv.Atoi(cmp.Or(name, "0"))
	if err != nil && name != "root" {
		return nobody
	}
	return id
}
