package registry

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestParse checks which words are references, and what they stand for.
func TestParse(t *testing.T) {
	const sum = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for text, want := range map[string]string{
		"ghcr.io/org/app:1.2":             "ghcr.io/org/app:1.2",
		"localhost/app":                   "localhost/app:latest",
		"registry:5000/app":               "registry:5000/app:latest",
		"[::1]:5000/app:1":                "[::1]:5000/app:1",
		"nvcr.io/nvidia/pytorch:1@" + sum: "nvcr.io/nvidia/pytorch@" + sum,
		"index.docker.io/ubuntu:22.04":    "docker.io/library/ubuntu:22.04",
		"docker://ubuntu:22.04":           "docker.io/library/ubuntu:22.04",
		"docker://pytorch/pytorch":        "docker.io/pytorch/pytorch:latest",
		"docker://ghcr.io/org/app:1.2":    "ghcr.io/org/app:1.2",
		// Words that could be paths or typing errors.
		"ubuntu:22.04": "", "image.tar": "", "build/image.tar": "", "./image.tar": "", "../a/b": "", "/a/b": "", "~/a": "", "": "",
		"docker://": "", "docker:///x": "", "ghcr.io/Org/App": "", "ghcr.io/a@md5:0": "", "user:password@ghcr.io/a": "", "ghcr.io/../a": "", "ghcr.io/a\n": "", "https://ghcr.io/a": "",
	} {
		ref, err := Parse(text)
		expect.Must(t, (err != nil) == (want == ""), "%q: got %v, want %q", text, err, want)
		expect.That(t, err != nil || ref.String() == want, "%q: got %v, want %q", text, ref, want)
	}
}

// network is a network of hosts: no connection is opened.
type network struct {
	mu    sync.Mutex
	hosts map[string]http.HandlerFunc
	// asked are the requests: scheme, host, and whether there was a password in it.
	asked []string
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if r.URL.User != nil {
		how = "in the address"
	}
	n.asked = append(n.asked, strings.TrimSpace(r.URL.Scheme+" "+r.URL.Host+" "+how))
	h := n.hosts[r.URL.Host]
	if h == nil {
		return nil, errors.New("no such host")
	}
	w := httptest.NewRecorder()
	h(w, r)
	got := w.Result()
	got.Request = r
	return got, nil
}

// passwords writes a file of passwords for registry.test.
func passwords(t *testing.T) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "auth.json")
	raw := fmt.Sprintf(`{"auths": {"registry.test": {"auth": %q}}}`, base64.StdEncoding.EncodeToString([]byte("user:secret")))
	expect.NoError(t, os.WriteFile(name, []byte(raw), 0o600))
	return []string{name}
}

// TestPasswords checks to which hosts a password is sent, whatever the registry answers: to itself, and to the host
// that it names for logging in. Requests that must not be sent at all are not.
func TestPasswords(t *testing.T) {
	basic := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				w.Header().Set("Www-Authenticate", `Basic realm="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next(w, r)
		}
	}
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", url)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}
	blob := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "blob") }
	bearer := func(realm string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer token" {
				w.Header().Set("Www-Authenticate", `Bearer realm="`+realm+`",service="x"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			blob(w, r)
		}
	}
	token := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"token": "token"}`) }
	const first = "https registry.test|https registry.test Basic|"
	for name, tt := range map[string]struct {
		registry http.HandlerFunc
		others   map[string]http.HandlerFunc
		want     string // The requests.
		fails    error
	}{
		"no password is asked for": {registry: blob, want: "https registry.test|https registry.test"},
		"basic":                    {registry: basic(blob), want: strings.TrimSuffix(first, "|")},
		"storage":                  {registry: basic(to("https://storage.test/x?signature=1")), others: map[string]http.HandlerFunc{"storage.test": blob}, want: first + "https storage.test"},
		"another port":             {registry: basic(to("https://registry.test:8443/x")), others: map[string]http.HandlerFunc{"registry.test:8443": blob}, want: first + "https registry.test:8443"},
		"storage that asks":        {registry: basic(to("https://storage.test/x")), others: map[string]http.HandlerFunc{"storage.test": basic(blob)}, want: first + "https storage.test", fails: &DeniedError{}},
		"there and back": {registry: basic(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/back" {
				blob(w, r)
				return
			}
			to("https://storage.test/x")(w, r)
		}), others: map[string]http.HandlerFunc{"storage.test": to("https://registry.test/back")}, want: first + "https storage.test|https registry.test Basic"},
		"not encrypted":         {registry: basic(to("http://storage.test/x")), want: strings.TrimSuffix(first, "|"), fails: ErrAnswer},
		"not encrypted itself":  {registry: basic(to("http://registry.test/x")), want: first + strings.Repeat("https registry.test Basic|", maxRedirects-1) + "https registry.test Basic", fails: ErrAnswer},
		"secrets of a cloud":    {registry: basic(to("https://169.254.169.254/latest/meta-data")), want: strings.TrimSuffix(first, "|"), fails: ErrAnswer},
		"this machine at once":  {registry: to("https://localhost:22/x"), want: "https registry.test", fails: ErrAnswer},
		"a private address":     {registry: basic(to("https://10.0.0.5/x")), want: strings.TrimSuffix(first, "|"), fails: ErrAnswer},
		"a password in it":      {registry: basic(to("https://a:b@storage.test/x")), want: strings.TrimSuffix(first, "|"), fails: ErrAnswer},
		"a circle":              {registry: to("https://registry.test/x"), want: strings.Repeat("https registry.test|", maxRedirects) + "https registry.test", fails: ErrAnswer},
		"token":                 {registry: bearer("https://registry.test/token"), want: "https registry.test|https registry.test Basic|https registry.test Bearer"},
		"token of another host": {registry: bearer("https://auth.test/token"), others: map[string]http.HandlerFunc{"auth.test": token}, want: "https registry.test|https auth.test Basic|https registry.test Bearer"},
		"token, redirected":     {registry: bearer("https://auth.test/token"), others: map[string]http.HandlerFunc{"auth.test": to("https://other.test/"), "other.test": token}, want: "https registry.test|https auth.test Basic|https other.test|https registry.test Bearer"},
		"token, not encrypted":  {registry: bearer("http://auth.test/token"), want: "https registry.test", fails: ErrAnswer},
		"token of a cloud":      {registry: bearer("https://169.254.169.254/token"), want: "https registry.test", fails: ErrAnswer},
		"token, to a cloud":     {registry: bearer("https://auth.test/token"), others: map[string]http.HandlerFunc{"auth.test": to("https://169.254.169.254/")}, want: "https registry.test|https auth.test Basic", fails: ErrAnswer},
		"token, refused": {registry: bearer("https://auth.test/token"), others: map[string]http.HandlerFunc{"auth.test": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		}}, want: "https registry.test|https auth.test Basic", fails: &DeniedError{}},
		"token that is none": {registry: bearer("https://auth.test/token"), others: map[string]http.HandlerFunc{"auth.test": blob}, want: "https registry.test|https auth.test Basic", fails: ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			registry := tt.registry
			digest, _, err := v1.SHA256(strings.NewReader("blob"))
			expect.NoError(t, err)
			n := &network{hosts: map[string]http.HandlerFunc{"registry.test": func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					token(w, r)
					return
				}
				registry(w, r)
			}}}
			maps.Copy(n.hosts, tt.others)
			r := expect.Value(Open(expect.Value(Parse("registry.test/org/app:1"))(t), Options{Silence: time.Minute, Logins: passwords(t), transport: n}))(t)
			body, err := r.Blob(t.Context(), digest)
			if err == nil {
				raw, readErr := io.ReadAll(body)
				closeErr := body.Close()
				expect.That(t, string(raw) == "blob" && readErr == nil && closeErr == nil, "got %q, %v, %v", raw, readErr, closeErr)
			}
			got := strings.Join(n.asked, "|")
			expect.That(t, got == tt.want, "asked\n%s\nwant\n%s", got, tt.want)
			expect.That(t, errors.Is(err, tt.fails), "got %v, want %v", err, tt.fails)
			expect.That(t, !regexp.MustCompile(`secret|signature|\n`).MatchString(fmt.Sprint(err)), "it tells too much: %v", err)
		})
	}
}

// TestItself checks which hosts are the machine itself or may answer with its secrets, however they are written.
func TestItself(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "a.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": true, "::": true,
		"169.254.169.254": true, "fe80::1%eth0": true, "127.1": true, "2130706433": true, "0x7f.1": true, "LocalHost.": true, "127.0.0.1.": true,
		"": false, "3box": false, "a.3com": false, "registry.test": false, "10.0.0.5": false, "2001:db8::1": false, "127.0.0.1.test": false,
	} {
		expect.Equal(t, want, isItself(host), "%s", host)
	}
}

// TestPlain checks that only a registry on this machine, or one that may, is asked without encryption.
func TestPlain(t *testing.T) {
	for host, plain := range map[string]bool{"registry.test": false, "10.0.0.4": false, "192.168.1.1:5000": false, "localhost:5000": true, "127.0.0.2:5000": true} {
		for _, allowed := range []bool{false, true} {
			n := &network{}
			r := expect.Value(Open(expect.Value(Parse(host+"/app:1"))(t), Options{Silence: time.Minute, PlainHTTP: allowed, transport: n}))(t)
			expect.Fails(r.Blob(t.Context(), v1.Hash{}))(t, nil, "%s: it was read", host)
			got := slices.Contains(n.asked, "http "+host)
			expect.That(t, got == (plain || allowed), "%s, --plain-http %t: asked %q", host, allowed, n.asked)
		}
	}
}

// TestAskedLate checks that a password is sent where a registry asks for one only for some images.
func TestAskedLate(t *testing.T) {
	n := &network{hosts: map[string]http.HandlerFunc{"registry.test": func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" && r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}}}
	r := expect.Value(Open(expect.Value(Parse("registry.test/org/app:1"))(t), Options{Silence: time.Minute, Logins: passwords(t), transport: n}))(t)
	_, _, err := r.Resolve(t.Context())
	expect.NoError(t, err)
	expect.NoDiff(t, []string{"https registry.test", "https registry.test", "https registry.test Basic"}, n.asked, "asked")
}

// TestLogins checks which entry of which file counts, and what is said where only a program may know the password.
func TestLogins(t *testing.T) {
	of := func(name, password string) string {
		return `"` + name + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("user:"+password)) + `"}`
	}
	auths := func(entries ...string) string { return `{"auths": {` + strings.Join(entries, ", ") + `}}` }
	for name, tt := range map[string]struct {
		ref    string
		files  []string // "-" is one that does not exist.
		want   string   // The password or token.
		helper string
		fails  string
	}{
		"none":                     {ref: "a.test/x", files: []string{"-"}},
		"the host":                 {ref: "a.test/x", files: []string{auths(of("b.test", "no"), of("a.test", "yes"))}, want: "yes"},
		"its address":              {ref: "a.test/x", files: []string{auths(of("https://a.test/v2/", "yes"))}, want: "yes"},
		"the port":                 {ref: "a.test:5000/x", files: []string{auths(of("a.test", "no"), of("a.test:5000", "yes"))}, want: "yes"},
		"a part":                   {ref: "a.test/org/x", files: []string{auths(of("a.test", "no"), of("a.test/org", "yes"), of("a.test/other", "no"))}, want: "yes"},
		"the image":                {ref: "a.test/org/x", files: []string{auths(of("a.test/org", "no"), of("a.test/org/x", "yes"))}, want: "yes"},
		"Docker Hub":               {ref: "docker://ubuntu", files: []string{auths(of("https://index.docker.io/v1/", "yes"))}, want: "yes"},
		"the first file":           {ref: "a.test/x", files: []string{"-", auths(of("a.test", "yes")), auths(of("a.test", "no"))}, want: "yes"},
		"the second file":          {ref: "a.test/x", files: []string{auths(of("b.test", "no")), auths(of("a.test", "yes"))}, want: "yes"},
		"name and password":        {ref: "a.test/x", files: []string{`{"auths": {"a.test": {"username": "user", "password": "yes"}}}`}, want: "yes"},
		"identity token":           {ref: "a.test/x", files: []string{`{"auths": {"a.test": {"auth": "dXNlcjo=", "identitytoken": "yes"}}}`}, want: "yes"},
		"helper":                   {ref: "a.test/x", files: []string{`{"auths": {"a.test": {}}, "credsStore": "desktop"}`}, helper: "docker-credential-desktop"},
		"helper of the registry":   {ref: "a.test/x", files: []string{`{"credHelpers": {"a.test": "ecr-login"}, "credsStore": "desktop"}`}, helper: "docker-credential-ecr-login"},
		"helper of another":        {ref: "a.test/x", files: []string{`{"credHelpers": {"b.test": "ecr-login"}}`}},
		"helper, then a password":  {ref: "a.test/x", files: []string{`{"credsStore": "desktop"}`, auths(of("a.test", "yes"))}, want: "yes", helper: "docker-credential-desktop"},
		"broken":                   {ref: "a.test/x", files: []string{`{"auths": secret}`}, fails: "its JSON is broken"},
		"broken entry":             {ref: "a.test/x", files: []string{`{"auths": {"a.test": {"auth": "secret!"}}}`}, fails: "an entry of auths is broken"},
		"broken entry of another":  {ref: "a.test/x", files: []string{`{"auths": {"b.test": {"auth": "secret!"}}}`}},
		"entry without a password": {ref: "a.test/x", files: []string{`{"auths": {"a.test": {"auth": "c2VjcmV0"}}}`}, fails: "an entry of auths is broken"},
		"large":                    {ref: "a.test/x", files: []string{strings.Repeat(" ", maxLogins+1)}, fails: "larger than 1 MiB"},
	} {
		ref := expect.Value(Parse(tt.ref))(t)
		l := &logins{ref: ref}
		l.asked.Store(true)
		for i, content := range tt.files {
			file := filepath.Join(t.TempDir(), fmt.Sprint(i))
			if content != "-" {
				expect.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			}
			l.files = append(l.files, file)
		}
		c, err := l.Authorization()
		_, helper := l.found()
		got := ""
		if c != nil {
			got = cmp.Or(c.IdentityToken, c.Password)
		}
		expect.That(t, got == tt.want && helper == tt.helper && (err != nil) == (tt.fails != ""), "%s: got %q, %q, %v", name, got, helper, err)
		expect.That(t, err == nil || strings.Contains(err.Error(), tt.fails) && !strings.Contains(err.Error(), "secret"), "%s: got %v, want %s", name, err, tt.fails)
	}
}

// TestLoginFiles checks where passwords are looked for.
func TestLoginFiles(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"", ""},
		{"HOME=/h", "/h/.config/containers/auth.json /h/.docker/config.json"},
		{"HOME=/h XDG_RUNTIME_DIR=/run/1 XDG_CONFIG_HOME=/c", "/run/1/containers/auth.json /c/containers/auth.json /h/.config/containers/auth.json /h/.docker/config.json"},
		{"HOME=/h DOCKER_CONFIG=/d", "/h/.config/containers/auth.json /d/config.json"},
		{"HOME=relative", ""},
		{"HOME=/h REGISTRY_AUTH_FILE=auth.json", "auth.json"},
	} {
		env := map[string]string{}
		for set := range strings.FieldsSeq(tt.env) {
			name, value, _ := strings.Cut(set, "=")
			env[name] = value
		}
		expect.Equal(t, tt.want, strings.Join(LoginFiles(func(name string) string { return env[name] }), " "), "%s", tt.env)
	}
}
