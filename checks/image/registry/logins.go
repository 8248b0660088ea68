package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"oras.land/oras-go/v2/registry/remote/auth"

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

// logins looks for the password of a repository. Its files are read once a registry asks
// for one.
type logins struct {
	files []string
	ref   Reference

	mu     sync.Mutex
	sent   bool
	helper string
}

// loginFile is a file of passwords.
type loginFile struct {
	Auths       map[string]login  `json:"auths"`
	CredsStore  string            `json:"credsStore"`
	CredHelpers map[string]string `json:"credHelpers"`
}

// login is how to log in to a registry. Auth is the user's name and the password, in Base64.
type login struct {
	Auth          string `json:"auth"`
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// LoginError is that of a file of passwords. It does not quote the file.
type LoginError struct {
	file string
	err  error
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("read %s: %v", escape.Printable(e.file, maxSaid), e.err)
}

func (e *LoginError) Unwrap() error { return e.err }

// found says whether a password was known, and which program may know one.
func (l *logins) found() (sent bool, helper string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.helper
}

// credential is the password for a registry; empty if no file has it. Other hosts get none.
func (l *logins) credential(_ context.Context, host string) (auth.Credential, error) {
	if host != l.ref.ref.Host() {
		return auth.EmptyCredential, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.files {
		file, err := readLogins(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return auth.EmptyCredential, &LoginError{name, err}
		}
		c, err := file.of(l.ref)
		if err != nil {
			return c, &LoginError{name, err}
		}
		if c != auth.EmptyCredential {
			l.sent = true
			return c, nil
		}
		if l.helper == "" {
			l.helper = file.helper(l.ref)
		}
	}
	return auth.EmptyCredential, nil
}

// maxLogins bounds a file of passwords.
const maxLogins = 1 << 20

func readLogins(name string) (*loginFile, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // Not waiting for the writer of a pipe.
	if err != nil {
		return nil, withoutName(err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(withoutName(err), errors.New("not a regular file"))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxLogins+1))
	if err != nil {
		return nil, withoutName(err)
	}
	if len(raw) > maxLogins {
		return nil, fmt.Errorf("larger than %d MiB", maxLogins>>20)
	}
	file := &loginFile{}
	if err := json.Unmarshal(raw, file); err != nil {
		return nil, errors.New("not a file of docker login or podman login: its JSON is broken")
	}
	return file, nil
}

// withoutName leaves out of an error the file that the caller names.
func withoutName(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// keys are under which names a file may have the password for a repository, the most
// particular first: Podman also writes it for a part of a registry.
func keys(ref Reference) []string {
	at := ref.Host() + "/" + ref.ref.Repository
	var all []string
	for {
		all = append(all, at)
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	if ref.Host() == hub {
		all = append(all, "index.docker.io", "registry-1.docker.io")
	}
	return all
}

// keyOf is the name of a registry without what docker login writes around it:
// https://index.docker.io/v1/.
func keyOf(written string) string {
	key := strings.TrimPrefix(strings.TrimPrefix(written, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	return key
}

// of is the password for a repository.
func (f *loginFile) of(ref Reference) (auth.Credential, error) {
	for _, key := range keys(ref) {
		for _, written := range slices.Sorted(maps.Keys(f.Auths)) {
			if keyOf(written) != key {
				continue
			}
			if c, err := f.Auths[written].credential(); err != nil || c != auth.EmptyCredential {
				return c, err
			}
		}
	}
	return auth.EmptyCredential, nil
}

// helper is the program that the file names for a registry.
func (f *loginFile) helper(ref Reference) string {
	for _, key := range keys(ref) {
		for written, helper := range f.CredHelpers {
			if keyOf(written) == key && helper != "" {
				return "docker-credential-" + helper
			}
		}
	}
	if f.CredsStore != "" {
		return "docker-credential-" + f.CredsStore
	}
	return ""
}

func (l login) credential() (auth.Credential, error) {
	c := auth.Credential{Username: l.Username, Password: l.Password, RefreshToken: l.IdentityToken, AccessToken: l.RegistryToken}
	if l.Auth != "" {
		raw, err := base64.StdEncoding.DecodeString(l.Auth)
		name, password, ok := strings.Cut(strings.TrimRight(string(raw), "\x00"), ":")
		if err != nil || !ok {
			return auth.EmptyCredential, errors.New("an entry of auths is broken")
		}
		c.Username, c.Password = name, password
	}
	if c.RefreshToken != "" || c.AccessToken != "" {
		c.Password = "" // The token stands for it.
	}
	return c, nil
}
