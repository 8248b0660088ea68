// Package library finds the libraries that GPUs communicate with, in the places from which a program
// would load them, and their versions.
package library

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Check is the check of the section "libraries".
var Check = &gather.Check{Name: "libraries", Gather: collect}

// Bounds of the search.
const (
	maxLibraries = 1024 // Files that are reported.
	maxFolders   = 512  // Folders that are looked into.
	maxMatches   = 64   // Folders that one pattern may stand for.
	maxPathList  = 64   // Folders of a variable such as LD_LIBRARY_PATH.
)

//go:embed libraries.yaml
var librariesYAML []byte

// searched are the libraries searched for, in the order of the report, and the folders where they are.
var searched = lazy.Table[struct {
	Libraries                           []libraryKind
	Default, Toolkit, Image, Site, Home []string
}](librariesYAML)

// libraryKind is one library and how its files are named.
type libraryKind struct {
	Name string
	// Components is how many numbers a file name must contain to state the version; 0 means that it never does:
	// libcudart.so.11.0 has the version of an interface.
	Components int
	// StubBytes is the size below which a driver library is a stub: the real libcuda has tens of MB, libnvidia-ml 2, their
	// stubs some tens of kB.
	StubBytes int64 `yaml:"stub_bytes"`
}

// rdmaProvider is a driver of libibverbs for one kind of NIC.
const rdmaProvider = "rdma-provider"

// providerName is the file name of such a driver: libmlx5-rdmav34.so (rdma-core, buildlib/rdma_functions.cmake).
var providerName = lazy.New(`^lib[a-z0-9_]+-rdmav[0-9]+\.so$`)

// Recognizes reports whether a file of this name is one of the libraries searched for.
func Recognizes(file string) bool {
	_, _, ok := splitLibrary(file)
	return ok
}

// HoldsVersion reports whether a library of this name holds the text that host.AskLibraryText asks for.
func HoldsVersion(file string) bool {
	kind, _, ok := splitLibrary(file)
	return ok && versionInText(kind.Name)
}

func versionInText(kind string) bool {
	return kind == "libnccl" || kind == "librccl" || kind == "nccl-net"
}

// Reads reports whether the check reads a file as a whole to find libraries.
func Reads(file string) bool {
	return file == loaderCache || file == loaderConf || path.Dir(file) == loaderConf+".d"
}

// libraryName splits a file name: libcudart-0a1b2c3d.so.12 (as Python wheels rename it) is libcudart and "12".
var libraryName = lazy.New(`^(lib[a-z0-9_-]+?)(?:-[0-9a-f]{8})?\.so((?:\.[0-9]+)*)$`)

// splitLibrary returns the kind of a file and the numbers after .so.
func splitLibrary(file string) (kind libraryKind, numbers string, ok bool) {
	if strings.Contains(file, "-rdmav") && providerName.MatchString(file) {
		return libraryKind{Name: rdmaProvider}, "", true
	}
	// Most files of a folder are others; the pattern need not look at them.
	if !slices.ContainsFunc(searched().Libraries, func(k libraryKind) bool { return strings.HasPrefix(file, k.Name) }) {
		return kind, "", false
	}
	groups := libraryName.FindStringSubmatch(file)
	if groups == nil {
		return kind, "", false
	}
	name := groups[1]
	if strings.HasPrefix(name, "libnccl-net") || strings.HasPrefix(name, "librccl-net") {
		name = "nccl-net"
	}
	i := slices.IndexFunc(searched().Libraries, func(k libraryKind) bool { return k.Name == name })
	if i < 0 {
		return kind, "", false
	}
	return searched().Libraries[i], strings.TrimPrefix(groups[2], "."), true
}

// isPlainName reports whether programs ask for a file of this name: libcuda.so.1, libcudart.so.11.0, libnccl-net.so.
func isPlainName(kind libraryKind, file string) bool {
	if kind.Name == "nccl-net" || kind.Name == rdmaProvider {
		return strings.HasSuffix(file, ".so")
	}
	numbers, ok := strings.CutPrefix(file, kind.Name+".so.")
	dots := strings.Count(numbers, ".")
	return ok && (dots == 0 || dots == 1 && kind.Name == "libcudart")
}

// How a library was found, as FoundBy says it.
const (
	byPreload     = "ld_preload"
	byLibraryPath = "ld_library_path"
	byCache       = "ld_cache"
	byDefault     = "default_path"
	byToolkit     = "toolkit"
	byPython      = "python"
)

// The files of the loader.
const (
	loaderCache = "/etc/ld.so.cache"
	loaderConf  = "/etc/ld.so.conf"
)

func collect(ctx context.Context, g *gather.Gathering) error {
	if err := anyFolder(g.Host); err != nil {
		return err
	}
	env, err := env.Environment(ctx, g.Host)
	if err != nil {
		g.Unknown("libraries", "files", "LD_LIBRARY_PATH is not known: "+err.Error(), "")
	}
	s := &librarySearch{g: g, h: g.Host, seen: make(map[string]bool), taken: make(map[string]bool)}
	s.readMountPoints()
	s.lookInLoader(ctx, env)
	folders := searched().Toolkit
	if g.Options.Image {
		folders = slices.Concat(folders, searched().Image)
	}
	for _, pattern := range folders {
		for _, folder := range s.expand(pattern) {
			s.lookInFolder(ctx, folder, byToolkit)
		}
	}
	if folder := env["ROCM_PATH"]; path.IsAbs(folder) {
		s.lookInFolder(ctx, path.Join(folder, "lib"), byToolkit)
	}
	s.lookInPython(ctx, env)
	if err := ctx.Err(); err != nil {
		return err
	}
	s.scan(ctx)
	place := func(l facts.Library) int {
		return slices.IndexFunc(searched().Libraries, func(k libraryKind) bool { return k.Name == l.Kind })
	}
	slices.SortStableFunc(s.f.Files, func(a, b facts.Library) int { return cmp.Compare(place(a), place(b)) })
	g.Facts.Libraries = &s.f
	return nil
}

// anyFolder reports an error if nothing is known of any default folder, as in a copy of /sys and /proc.
func anyFolder(h *host.Host) error {
	var err error
	for _, folder := range searched().Default {
		if _, err = h.Dir(folder); !errors.Is(err, host.ErrNotRecorded) {
			return nil
		}
	}
	return fmt.Errorf("look for libraries: %w", err)
}

// librarySearch collects libraries, in the order in which a loader meets them.
type librarySearch struct {
	g *gather.Gathering
	h *host.Host
	f facts.LibraryFacts
	// seen holds what was reported, by way of finding and real path.
	seen map[string]bool
	// taken holds the plain names that the loader has found.
	taken map[string]bool
	// mounted are the mount points.
	mounted map[string]bool
	folders int
}

func (s *librarySearch) readMountPoints() {
	s.f.Files = []facts.Library{}
	mounts, err := container.ReadMounts(s.h)
	if err != nil {
		s.g.Unknown("libraries", "files.mounted", err.Error(), gather.HintFor(err))
		return
	}
	s.mounted = make(map[string]bool, len(mounts))
	for _, m := range mounts {
		s.mounted[m.Mountpoint] = true
	}
}

// lookInLoader looks where the loader of a program looks, in its order (ld.so(8)).
func (s *librarySearch) lookInLoader(ctx context.Context, env map[string]string) {
	preload := func(r rune) bool { return r == ':' || r == ' ' }
	for _, file := range s.bounded(strings.FieldsFunc(env["LD_PRELOAD"], preload)) {
		if path.IsAbs(file) {
			s.addFile(path.Clean(file), byPreload)
		}
	}
	list := func(r rune) bool { return r == ':' || r == ';' }
	for _, folder := range s.bounded(strings.FieldsFunc(env["LD_LIBRARY_PATH"], list)) {
		if path.IsAbs(folder) {
			s.lookInFolder(ctx, path.Clean(folder), byLibraryPath)
		}
	}
	configured := s.lookInCache()
	for _, folder := range searched().Default {
		s.lookInFolder(ctx, folder, byDefault)
	}
	// Without a cache the loader does not read ld.so.conf. Its folders are
	// searched last: container runtimes create the cache when they start.
	for _, folder := range configured {
		s.lookInFolder(ctx, folder, byToolkit)
	}
}

func (s *librarySearch) bounded(list []string) []string {
	if len(list) > maxPathList {
		s.f.Truncated = true
		list = list[:maxPathList]
	}
	return list
}

// lookInCache adds what the loader's cache names. Without one, it returns the folders that it would be made of.
func (s *librarySearch) lookInCache() []string {
	b, err := s.h.Read(loaderCache)
	if errors.Is(err, fs.ErrNotExist) {
		return s.configuredFolders()
	}
	var entries []cacheEntry
	if err == nil {
		entries, err = parseLdCache(b)
	}
	if err != nil {
		s.g.Unknown("libraries", "files", fmt.Sprintf("%s: %v", loaderCache, err), gather.HintFor(err))
		return s.configuredFolders()
	}
	for _, e := range entries {
		if _, _, ok := splitLibrary(e.name); ok && path.IsAbs(e.path) {
			s.addFile(path.Clean(e.path), byCache)
		}
	}
	return nil
}

// configuredFolders returns the folders that ld.so.conf and the files that it includes by default name (ldconfig(8)).
func (s *librarySearch) configuredFolders() []string {
	text, err := s.h.Text(loaderConf)
	if err != nil {
		return nil
	}
	for _, file := range s.expand(loaderConf + ".d/*.conf") {
		included, _ := s.h.Text(file) // One that cannot be read names nothing.
		text += "\n" + included
	}
	var folders []string
	for line := range strings.Lines(text) {
		folder, _, _ := strings.Cut(line, "#")
		if folder = strings.TrimSpace(folder); path.IsAbs(folder) {
			folders = append(folders, path.Clean(folder))
		}
	}
	return s.bounded(folders)
}

// expand returns the paths that a pattern with * stands for.
func (s *librarySearch) expand(pattern string) []string {
	found := []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, folder := range found {
			if !strings.ContainsAny(part, "*?[") {
				next = append(next, path.Join(folder, part))
				continue
			}
			names, err := s.h.Dir(folder)
			if err != nil {
				continue // A guess that does not exist.
			}
			for _, name := range names {
				if ok, err := path.Match(part, name); err == nil && ok {
					next = append(next, path.Join(folder, name))
				}
			}
		}
		if len(next) > maxMatches {
			s.f.Truncated = true
			next = next[:maxMatches]
		}
		found = next
	}
	return found
}

// list returns a folder's names; a folder that does not exist has none.
func (s *librarySearch) list(ctx context.Context, folder string) []string {
	if ctx.Err() != nil {
		return nil
	}
	if s.folders++; s.folders > maxFolders {
		s.f.Truncated = true
		return nil
	}
	names, err := s.h.Dir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if info, statErr := s.h.Stat(folder); statErr != nil || info.Mode.IsDir() {
			s.g.Unknown("libraries", "files", err.Error(), gather.HintFor(err))
		}
	}
	return names
}

// lookInFolder adds the libraries of a folder. The names that programs ask for come first: they stand for the files to
// which they lead.
func (s *librarySearch) lookInFolder(ctx context.Context, folder, foundBy string) {
	var plain, other []string
	for _, file := range s.list(ctx, folder) {
		kind, _, ok := splitLibrary(file)
		switch {
		case !ok:
		case isPlainName(kind, file):
			plain = append(plain, file)
		default:
			other = append(other, file)
		}
	}
	for _, file := range slices.Concat(plain, other) {
		s.addFile(path.Join(folder, file), foundBy)
	}
}

// addFile adds one file, if it is one of those looked for and can be opened by its name.
func (s *librarySearch) addFile(at, foundBy string) {
	kind, _, ok := splitLibrary(path.Base(at))
	if !ok {
		return
	}
	info, err := s.h.Stat(at)
	if err != nil || !info.Mode.IsRegular() {
		return // A dangling link, which the loader also skips, or what no program can load.
	}
	realPath, err := s.h.Real(at)
	if err != nil {
		realPath = at
	}
	loads := s.takes(kind, at, foundBy)
	key := foundBy + " " + realPath
	if s.seen[key] {
		if loads { // Another name of the same file is the one that is taken.
			i := slices.IndexFunc(s.f.Files, func(l facts.Library) bool { return l.FoundBy == foundBy && cmp.Or(l.RealPath, l.Path) == realPath })
			rename(&s.f.Files[i], at, realPath)
			s.f.Files[i].Loads = true
		}
		return
	}
	if len(s.f.Files) == maxLibraries {
		s.f.Truncated = true
		return
	}
	s.seen[key] = true
	lib := facts.Library{Kind: kind.Name, FoundBy: foundBy, Loads: loads}
	rename(&lib, at, realPath)
	lib.Empty = info.Size == 0
	lib.Compat = hasFolder(at, "compat") || hasFolder(realPath, "compat")
	lib.Layer = s.h.Layer(realPath)
	lib.Mounted = s.mounted[at] || s.mounted[realPath]
	// What someone put first by a variable is his own choice, a small stand-in for the driver included.
	tiny := info.Size > 0 && info.Size < kind.StubBytes && foundBy != byLibraryPath && foundBy != byPreload
	lib.Stub = hasFolder(at, "stubs") || hasFolder(realPath, "stubs") || tiny
	lib.Version = versionOfName(kind, path.Base(realPath))
	s.f.Files = append(s.f.Files, lib)
}

func rename(l *facts.Library, at, realPath string) {
	l.Path, l.RealPath = at, ""
	if realPath != at {
		l.RealPath = realPath
	}
}

// takes reports whether this is the file that the loader takes for its plain name: the first that it meets, but for files of
// another word size. A library that is loaded beforehand stands for its name even when its file bears another.
func (s *librarySearch) takes(kind libraryKind, at, foundBy string) bool {
	name := path.Base(at)
	switch {
	case foundBy == byPreload:
		name = kind.Name
	case foundBy == byToolkit, foundBy == byPython, !isPlainName(kind, name), s.taken[kind.Name]:
		return false
	}
	if s.taken[name] || foundBy != byCache && s.is32Bit(at) {
		return false
	}
	s.taken[name] = true
	return true
}

// is32Bit reports whether a file is an ELF file of 32 bits (EI_CLASS, elf(5)).
func (s *librarySearch) is32Bit(at string) bool {
	head, err := s.h.ReadPart(at, 5)
	return err == nil && len(head) == 5 && string(head[:4]) == "\x7fELF" && head[4] == 1
}

func hasFolder(at, folder string) bool { return strings.Contains(path.Dir(at)+"/", "/"+folder+"/") }

func versionOfName(kind libraryKind, file string) string {
	_, numbers, ok := splitLibrary(file)
	if !ok || kind.Components == 0 || strings.Count(numbers, ".")+1 < kind.Components {
		return ""
	}
	return numbers
}

func (s *librarySearch) lookInPython(ctx context.Context, env map[string]string) {
	var patterns []string
	for _, prefix := range []string{env["VIRTUAL_ENV"], env["CONDA_PREFIX"]} {
		if path.IsAbs(prefix) {
			patterns = append(patterns, path.Join(prefix, "lib/python3*/site-packages"))
			s.lookInFolder(ctx, path.Join(prefix, "lib"), byPython) // Conda's packages of libraries.
		}
	}
	for _, folder := range s.bounded(strings.Split(env["PYTHONPATH"], ":")) {
		if path.IsAbs(folder) {
			patterns = append(patterns, folder)
		}
	}
	if home := env["HOME"]; path.IsAbs(home) {
		for _, folder := range searched().Home {
			patterns = append(patterns, path.Join(home, folder, "lib/python3*/site-packages"))
		}
	}
	s.lookInFolder(ctx, "/opt/conda/lib", byPython)
	sites := make(map[string]bool)
	for _, pattern := range slices.Concat(patterns, searched().Site) {
		for _, site := range s.expand(path.Clean(pattern)) {
			if !sites[site] {
				sites[site] = true
				s.lookInSite(ctx, site)
			}
		}
	}
}

// lookInSite looks into one folder of packages: NVIDIA's libraries lie in nvidia/*/lib, AMD's (ROCm/TheRock) in
// _rocm_sdk_*/lib, PyTorch's own copies in torch/lib.
func (s *librarySearch) lookInSite(ctx context.Context, site string) {
	names := s.list(ctx, site)
	if s.g.Options.Image {
		s.addPackages(site, names)
	}
	if slices.Contains(names, "nvidia") {
		before := len(s.f.Files)
		for _, part := range s.list(ctx, path.Join(site, "nvidia")) {
			s.lookInFolder(ctx, path.Join(site, "nvidia", part, "lib"), byPython)
		}
		for i := before; i < len(s.f.Files); i++ {
			lib := &s.f.Files[i]
			if version := packageVersion(names, lib.Kind); version != "" && lib.Version == "" {
				lib.Version = version
			}
		}
	}
	for _, name := range names {
		if strings.HasPrefix(name, "_rocm_sdk_") {
			s.lookInFolder(ctx, path.Join(site, name, "lib"), byPython)
		}
	}
	if slices.Contains(names, "torch") {
		s.lookInFolder(ctx, path.Join(site, "torch/lib"), byPython)
	}
}

const maxPackages = 512

// distInfo splits the name of a folder with the metadata of a Python package: torch-2.9.1.dist-info. The name of the
// package is written as PEP 503 has it.
func distInfo(folder string) (pack, version string, ok bool) {
	folder, isInfo := strings.CutSuffix(folder, ".dist-info")
	pack, version, ok = strings.Cut(folder, "-")
	return strings.ReplaceAll(strings.ToLower(pack), "_", "-"), escape.Printable(version, gather.MaxShown), ok && isInfo
}

func (s *librarySearch) addPackages(site string, names []string) {
	for _, name := range names {
		pack, version, ok := distInfo(name)
		if !ok || pack != "torch" && !strings.HasPrefix(pack, "nvidia-") {
			continue
		}
		if len(s.f.Packages) == maxPackages {
			s.f.Truncated = true
			return
		}
		at := path.Join(site, name)
		s.f.Packages = append(s.f.Packages, facts.PythonPackage{Name: escape.Printable(pack, gather.MaxShown), Version: version, Path: at, Layer: s.h.Layer(at)})
	}
}

// packages are the names of NVIDIA's Python packages by the library in them; cu12 and its like may follow.
var packages = map[string]string{"libnccl": "nvidia-nccl", "libcudart": "nvidia-cuda-runtime", "libcudnn": "nvidia-cudnn"}

// packageVersion returns the version of the package that brought a library: nvidia_nccl_cu12-2.27.3.dist-info. Two packages
// that share a folder overwrite each other; then the version is unknown.
func packageVersion(names []string, kind string) string {
	found := ""
	for _, name := range names {
		pack, version, ok := distInfo(name)
		suffix, isIt := strings.CutPrefix(pack, packages[kind])
		switch {
		case !ok || !isIt || packages[kind] == "" || suffix != "" && !strings.HasPrefix(suffix, "-cu"):
		case found != "" && found != version:
			return ""
		default:
			found = version
		}
	}
	return found
}

// scan asks for the versions that stand in libraries that nothing else tells: in an image all of them, else one NCCL or
// RCCL, the one that the loader takes, or else the first: searching takes long.
func (s *librarySearch) scan(ctx context.Context) {
	at := -1
	for i, lib := range s.f.Files {
		switch {
		case lib.Version != "" || lib.Empty || !versionInText(lib.Kind):
		case s.g.Options.Image:
			s.scanText(ctx, &s.f.Files[i])
		case lib.Kind != "nccl-net" && (at < 0 || lib.Loads && !s.f.Files[at].Loads):
			at = i
		}
	}
	if at >= 0 {
		s.scanText(ctx, &s.f.Files[at])
	}
}

func (s *librarySearch) scanText(ctx context.Context, lib *facts.Library) {
	var text string
	if err := s.h.Ask(ctx, host.AskLibraryText+cmp.Or(lib.RealPath, lib.Path), &text); err != nil {
		s.g.Unknown("libraries", "files.version", err.Error(), gather.HintFor(err))
		return
	}
	for _, before := range []string{" version ", "aws-ofi-nccl "} {
		if _, version, ok := strings.Cut(text, before); ok {
			lib.Version = escape.Printable(version, gather.MaxShown)
		}
	}
}
