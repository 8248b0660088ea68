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

// Platform is the processor that an image is for: amd64, or arm64 with the variant v8.
type Platform struct {
	Architecture, Variant string
	// Required is true where an image for another platform must be rejected, even if there is only one.
	Required bool
}

// DefaultArchitecture is that of most GPU machines. It does not depend on the machine that
// gpudoctor runs on, so that a gate gives the same result everywhere.
const DefaultArchitecture = "amd64"

// platformName is how a platform is written: linux/amd64, linux/arm64/v8.
var platformName = lazy.New(`^linux/([a-z0-9_]{2,16})(?:/([a-z0-9]{1,16}))?$`)

// ParsePlatform reads a platform.
func ParsePlatform(text string) (Platform, bool) {
	m := platformName.FindStringSubmatch(text)
	if m == nil {
		return Platform{}, false
	}
	return Platform{Architecture: m[1], Variant: m[2], Required: true}, true
}

func (p Platform) String() string { return p.spec().String() }

// spec is what an image must satisfy. A variant that is not asked for may be any.
func (p Platform) spec() v1.Platform {
	return v1.Platform{OS: "linux", Architecture: cmp.Or(p.Architecture, DefaultArchitecture), Variant: p.Variant}
}

// takes reports whether the only image will do. Its configuration may lack the architecture or the variant.
func (p Platform) takes(of v1.Platform) bool {
	of.Variant = cmp.Or(of.Variant, p.Variant)
	return !p.Required || of.Architecture == "" || of.Satisfies(p.spec())
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
		if d.Platform != nil && d.Platform.Satisfies(p.spec()) {
			here = append(here, d)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(all) == 0:
		return v1.Descriptor{}, fmt.Errorf("%w: its index names no image", ErrNotImage)
	case len(here) == 1:
		return here[0], nil
	case len(all) == 1 && (all[0].Platform == nil || !p.Required):
		return all[0], nil
	case len(here) > 1:
		return v1.Descriptor{}, fmt.Errorf("%w for %s", ErrSeveral, p)
	case !p.Required && len(names) < 2:
		return v1.Descriptor{}, ErrSeveral
	}
	return v1.Descriptor{}, fmt.Errorf("%w for %s: it has %s", ErrPlatform, p, strings.Join(names[:min(len(names), maxPlatforms)], ", "))
}
