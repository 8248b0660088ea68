package image

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Platform is the processor that an image is for.
type Platform struct {
	Architecture string
	// Required is true where an image for another platform must be rejected, even if there is only one.
	Required bool
}

// defaultArchitecture is that of most GPU machines. It does not depend on the machine that
// gpudoctor runs on, so that a gate gives the same result everywhere.
const defaultArchitecture = "amd64"

// platformName is how a platform is written. Variants (linux/arm64/v8) do not count.
var platformName = lazy.New(`^linux/([a-z0-9_]{2,16})(?:/v[0-9])?$`)

// ParsePlatform reads a platform.
func ParsePlatform(text string) (Platform, bool) {
	name := platformName.First(text)
	return Platform{Architecture: name, Required: true}, name != ""
}

func (p Platform) architecture() string { return cmp.Or(p.Architecture, defaultArchitecture) }

func (p Platform) String() string { return "linux/" + p.architecture() }

// takes reports whether the only image will do. Its configuration may lack the architecture.
func (p Platform) takes(architecture string) bool {
	return !p.Required || architecture == "" || architecture == p.architecture()
}

func platformOf(p *v1.Platform) string {
	if p == nil || p.String() == "" {
		return "an unknown platform"
	}
	return escape.Printable(p.String(), maxShown)
}

const maxPlatforms = 8

// choose takes the only image, or the one for the platform.
func choose(all []v1.Descriptor, p Platform) (v1.Descriptor, error) {
	var here []v1.Descriptor
	var names []string
	for _, d := range all {
		names = append(names, platformOf(d.Platform))
		if d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == p.architecture() {
			here = append(here, d)
		}
	}
	switch {
	case len(all) == 0:
		return v1.Descriptor{}, fmt.Errorf("%w: its index names no image", ErrNotImage)
	case len(here) == 1:
		return here[0], nil
	case len(here) > 1:
		return v1.Descriptor{}, fmt.Errorf("%w for %s", ErrSeveral, p)
	case len(all) == 1 && !p.Required:
		return all[0], nil
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return v1.Descriptor{}, fmt.Errorf("%w for %s: it has %s", ErrPlatform, p, strings.Join(names[:min(len(names), maxPlatforms)], ", "))
}
