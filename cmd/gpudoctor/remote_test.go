package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/checks/image/registry"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// locked is a registry that asks for the password of user.
func locked(usual http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		if r.Method == http.MethodGet && (name != "user" || password != "secret") {
			w.Header().Set("Www-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		usual.ServeHTTP(w, r)
	})
}

// TestImageLogin checks that the passwords of docker login are used, and what is said where
// there is none, a wrong one, or only a program that may know it. That program is not run.
func TestImageLogin(t *testing.T) {
	server := imagetest.Serve(t, locked)
	ref := server.Push(goodImages[0].img.Build(t), "1")
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	helper := "#!/bin/sh\ntouch " + ran + "\n"
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-keeper"), []byte(helper), 0o700); err != nil { //nolint:gosec // A program.
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	auth := func(password string) string {
		return `{"auths": {"` + server.Host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte("user:"+password)) + `"}}}`
	}
	for name, tt := range map[string]struct{ file, want, hint string }{
		"right":  {file: auth("secret")},
		"none":   {file: `{}`, want: "denies access: 401", hint: "no file has a password for " + server.Host},
		"wrong":  {file: auth("wrong"), want: "denies access: 401", hint: "the password was sent"},
		"helper": {file: `{"credsStore": "keeper"}`, want: "denies access: 401", hint: "only docker-credential-keeper may know the password"},
		"broken": {file: `{"auths": "secret"}`, want: "its JSON is broken", hint: "docker login"},
	} {
		file := filepath.Join(t.TempDir(), "auth.json")
		expect.NoError(t, os.WriteFile(file, []byte(tt.file), 0o600))
		t.Setenv("REGISTRY_AUTH_FILE", file)
		code, stdout, stderr := inProcess("image", ref)
		first, rest, _ := strings.Cut(stderr, "\n")
		switch {
		case tt.want == "" && (code != exitOK || !strings.Contains(stdout, "No problems found")):
			t.Errorf("%s: exit code %d, %s%s", name, code, stdout, stderr)
		case tt.want != "" && (code != exitError || stdout != "" || !strings.Contains(first, tt.want) || !strings.Contains(rest, tt.hint)):
			t.Errorf("%s: exit code %d, %s%s", name, code, stdout, stderr)
		case strings.Contains(stdout+stderr, "secret"):
			t.Errorf("%s: the password is shown: %s%s", name, stdout, stderr)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program that keeps passwords was run")
	}
}

// TestImagePlatform checks that the target decides which image of several is read, unless the
// command line does.
func TestImagePlatform(t *testing.T) {
	var platforms []v1.Platform
	var images []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		img := goodImages[0].img
		img.Architecture = arch
		platforms, images = append(platforms, v1.Platform{OS: "linux", Architecture: arch}), append(images, img.Build(t))
	}
	ref := imagetest.Serve(t, nil).PushIndex("several", platforms, images)
	grace := filepath.Join(t.TempDir(), "grace.json")
	expect.NoError(t, os.WriteFile(grace, []byte(`{"schema": "gpudoctor.facts/v1", "host": {"arch": "arm64"}}`), 0o600))
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{nil, "linux/amd64"},
		{[]string{"--target", grace}, "linux/arm64"},
		{[]string{"--target", grace, "--platform", "linux/amd64"}, "linux/amd64"},
		{[]string{"--platform", "linux/arm64"}, "linux/arm64"},
	} {
		r := parseRequest(t, append([]string{"--from", registry.Scheme + ref}, tt.flags...))
		g := r.gather(t.Context())
		expect.That(t, g.err == nil && g.facts.Image.Platform == tt.want, "%v: got %+v, %v", tt.flags, g.facts, g.err)
	}
}

// TestRegistryOnly checks what commands that do not write reports say of a registry.
func TestRegistryOnly(t *testing.T) {
	for command, want := range map[string]string{"facts": "the registry cannot be reached", "topo": "only images are read from a registry", "probe p2p": "only images are read from a registry"} {
		code, _, stderr := inProcess(append(strings.Fields(command), "--from", "docker://127.0.0.1:1/org/app:1", "--no-redact")...)
		first, rest, _ := strings.Cut(stderr, "\n")
		expect.That(t, code == exitError && strings.Contains(first, want) && strings.HasPrefix(rest, "hint: "), "%s: %s", command, stderr)
	}
}

// TestImageAgain checks that the command that checks an image in a registry again names it as
// --from takes it.
func TestImageAgain(t *testing.T) {
	s := source{from: []string{"127.0.0.1:1/org/app:1"}}
	expect.NoError(t, s.findImage(t.Context()))
	r := request{profile: rules.Image, failOn: report.Threshold(rules.High), source: s}
	got := parseRequest(t, r.recheck().Flags)
	if got.source.remote == nil || got.source.remote.String() != s.remote.String() {
		t.Errorf("it checks again with %q", r.recheck().Flags)
	}
}

// TestConnections checks that one package of the program can open connections, that which
// reads images from a registry; another asks the kernel for the addresses of interfaces, and
// a third connects a child to itself, where it listens.
func TestConnections(t *testing.T) {
	list := expect.Value(exec.Command("go", "list", "-deps", "-f", `{{range .Imports}}{{$.ImportPath}} {{.}}{{"\n"}}{{end}}`, ".").Output())(t)
	const own, only = "github.com/gpudoctor/gpudoctor/", "github.com/gpudoctor/gpudoctor/checks/image/registry"
	found := false
	for line := range strings.Lines(string(list)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		connects := to == "net" || to == "net/http" || strings.HasPrefix(to, "oras.land/")
		found = found || connects && from == only
		asks := to == "net" && (from == own+"checks/internal/netlink" || from == own+"checks/internal/attempt")
		expect.That(t, !connects || !strings.HasPrefix(from, own) || from == only || asks, "%s imports %s", from, to)
	}
	expect.That(t, found, "%s imports no package that opens connections: this test looks for the wrong ones", only)
}
