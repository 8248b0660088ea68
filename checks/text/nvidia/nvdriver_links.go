package nvidia

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvdriverLinkKind is the link by which the loader finds a library of the
// driver, as ls -l or readlink show it: its target is named after the version.
//
//	lrwxrwxrwx 1 root root 25 Nov  2 10:12 /usr/lib64/libnvidia-ml.so.1 -> libnvidia-ml.so.550.90.07
//
// A compatibility library is another's business: it is meant to be of another
// version.
var nvdriverLinkKind = &parse.Kind{
	Name:    "driver-library-link",
	Title:   "libraries of the NVIDIA driver, from ls -l",
	Command: "ls -l /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
	Gives:   []string{"software"},
	Anchors: []string{"libnvidia-ml.so.1 -> ", "libcuda.so.1 -> "},
	Line: parse.LineLike(nvdriverLink, func(s *parse.Sink, l parse.Line, m []string) bool {
		if strings.Contains(l.Text, "/compat") {
			return false
		}
		s.Package(m[1], m[2], "", "file", l)
		return true
	}),
}

var nvdriverLink = lazy.New(`\b(libnvidia-ml|libcuda)\.so\.1 -> (?:\S*/)?lib(?:nvidia-ml|cuda)\.so\.(\d{3}\.\d{1,4}(?:\.\d{1,4})?)\s*$`)
