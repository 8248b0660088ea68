package registry

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/gpudoctor/gpudoctor/checks/escape"
)

// LoginFiles are the files in which docker login and podman login write passwords, in the
// order in which they count (containers-auth.json(5)).
func LoginFiles(env func(name string) string) []string {
	if file := env("REGISTRY_AUTH_FILE"); file != "" {
		return []string{file}
	}
	var all []string
	add := func(dir string, more ...string) {
		if filepath.IsAbs(dir) {
			all = append(all, filepath.Join(append([]string{dir}, more...)...))
		}
	}
	add(env("XDG_RUNTIME_DIR"), "containers", "auth.json")
	add(env("XDG_CONFIG_HOME"), "containers", "auth.json")
	add(env("HOME"), ".config", "containers", "auth.json")
	if dir := env("DOCKER_CONFIG"); dir != "" {
		return append(all, filepath.Join(dir, "config.json"))
	}
	add(env("HOME"), ".docker", "config.json")
	return all
}

// logins looks for the password of a repository. Its files are read once a registry asks for one.
type logins struct {
	files []string
	ref   Reference
	asked atomic.Bool

	mu     sync.Mutex
	sent   bool
	helper string
}

type loginFile struct {
	Auths       map[string]json.RawMessage `json:"auths"`
	CredsStore  string                     `json:"credsStore"`
	CredHelpers map[string]string          `json:"credHelpers"`
}

// ErrLogins is the error of a file of passwords. It does not quote the file.
var ErrLogins = errors.New("a file of passwords cannot be read")

// found says whether a password was known, and which program may know one.
func (l *logins) found() (sent bool, helper string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.helper
}

// Authorization is the password for the registry; empty if it asks for none, or no file has it.
func (l *logins) Authorization() (*authn.AuthConfig, error) {
	if !l.asked.Load() {
		return &authn.AuthConfig{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := keys(l.ref)
	for _, name := range l.files {
		file, err := readLogins(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found := &authn.AuthConfig{}
		if err == nil {
			found, err = file.of(keys)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrLogins, escape.Printable(name, maxSaid), err)
		}
		if *found != (authn.AuthConfig{}) {
			l.sent = true
			return found, nil
		}
		l.helper = cmp.Or(l.helper, file.helper(keys))
	}
	return &authn.AuthConfig{}, nil
}

const maxLogins = 1 << 20

func readLogins(name string) (*loginFile, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // Not waiting for the writer of a pipe.
	if err != nil {
		return nil, errors.Unwrap(err) // Without the name, which the caller tells.
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	file := &loginFile{}
	if err := json.NewDecoder(io.LimitReader(f, maxLogins)).Decode(file); err != nil {
		return nil, errors.New("not a file of docker login or podman login: its JSON is broken, or larger than 1 MiB")
	}
	return file, nil
}

// keys are under which names a file may have the password for a repository, the most
// particular first: Podman also writes it for a part of a registry.
func keys(ref Reference) []string {
	var all []string
	for at := ref.named.Name(); at != "."; at = path.Dir(at) {
		all = append(all, at)
	}
	if ref.Host() == "docker.io" {
		all = append(all, "index.docker.io", "registry-1.docker.io")
	}
	return all
}

// keyOf is the name of a registry without what docker login writes around it: https://index.docker.io/v1/.
func keyOf(written string) string {
	key := strings.TrimPrefix(strings.TrimPrefix(written, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	return key
}

// of is the password under the first of the keys that has one.
func (f *loginFile) of(keys []string) (*authn.AuthConfig, error) {
	for _, key := range keys {
		for _, written := range slices.Sorted(maps.Keys(f.Auths)) {
			if keyOf(written) != key {
				continue
			}
			found := &authn.AuthConfig{}
			if err := json.Unmarshal(f.Auths[written], found); err != nil {
				return nil, errors.New("an entry of auths is broken")
			}
			if *found != (authn.AuthConfig{}) {
				return found, nil
			}
		}
	}
	return &authn.AuthConfig{}, nil
}

// helper is the program that the file names for a registry.
func (f *loginFile) helper(keys []string) string {
	name := f.CredsStore
	for written, of := range f.CredHelpers {
		if of != "" && slices.Contains(keys, keyOf(written)) {
			name = of
		}
	}
	if name == "" {
		return ""
	}
	return "docker-credential-" + name
}
