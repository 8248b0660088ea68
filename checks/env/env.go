// Package env reads the variables that control how GPUs communicate: from the environment and the files of NCCL and RCCL.
package env

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Check is the check of the section "env".
var Check = &gather.Check{Name: "env", Gather: collect}

const (
	// MaxValue bounds the value of a variable, in bytes.
	MaxValue     = 4 << 10
	maxVariables = 1024
	// confValue is how much of a name or a value NCCL takes from a file (setEnvFile, NCCL src/misc/param.cc).
	confValue = 1023
)

// Environment returns the variables that the host's answer holds, by name.
func Environment(ctx context.Context, h *host.Host) (map[string]string, error) {
	var list []string
	if err := h.Ask(ctx, host.AskEnviron, &list); err != nil {
		return nil, fmt.Errorf("read the environment: %w", err)
	}
	env := make(map[string]string, len(list))
	for _, setting := range list {
		name, value, ok := strings.Cut(setting, "=")
		if _, known := env[name]; ok && name != "" && !known { // getenv(3) takes the first.
			env[name] = value
		}
	}
	return env, nil
}

func collect(ctx context.Context, g *gather.Gathering) error {
	env, err := Environment(ctx, g.Host)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		// The files of a root folder count, though the variables of its image are unknown.
		g.Unknown("env", "", err.Error(), "examine the image in a form that has its configuration: an OCI layout, or an archive of docker save")
	}
	variables := []facts.Variable{}
	for name, value := range env {
		if host.SteersCommunication(name) && escape.Printable(name, confValue) == name {
			variables = append(variables, facts.Variable{
				Name: name, Value: escape.Printable(value, MaxValue), Source: "environment", Effective: true,
			})
		}
	}
	nccl, rccl := confFiles(homeFolder(ctx, g.Host, env), env["NCCL_CONF_FILE"])
	for _, files := range [][]string{nccl, rccl} {
		variables = append(variables, readConfFiles(g, files, env)...)
	}
	slices.SortStableFunc(variables, func(a, b facts.Variable) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line))
	})
	g.Facts.Env = &facts.EnvFacts{Variables: variables}
	return nil
}

// confFiles returns the files that NCCL and RCCL read, in order. A file that NCCL_CONF_FILE names replaces the one in the home
// folder (since NCCL 2.23; initEnvFunc, NCCL src/misc/param.cc).
func confFiles(home, conf string) (nccl, rccl []string) {
	switch {
	case conf != "":
		nccl = append(nccl, conf)
	case home != "":
		nccl = append(nccl, path.Join(home, ".nccl.conf"))
		rccl = append(rccl, path.Join(home, ".rccl.conf"))
	}
	return append(nccl, "/etc/nccl.conf"), append(rccl, "/etc/rccl.conf")
}

// homeFolder returns the user's home, from HOME or the password file; empty if neither states it.
func homeFolder(ctx context.Context, h *host.Host, env map[string]string) string {
	if home := env["HOME"]; path.IsAbs(home) {
		return path.Clean(home)
	}
	var ids host.IDs
	if err := h.Ask(ctx, host.AskIDs, &ids); err != nil {
		return ""
	}
	users, _ := h.Text("/etc/passwd")
	uid := strconv.Itoa(ids.UID)
	for line := range strings.Lines(users) {
		// name:password:uid:gid:comment:home:shell, passwd(5).
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) >= 6 && f[2] == uid && path.IsAbs(f[5]) {
			return path.Clean(f[5])
		}
	}
	return ""
}

// readConfFiles returns what one library's files set. The environment and an earlier setting win.
func readConfFiles(g *gather.Gathering, files []string, env map[string]string) []facts.Variable {
	var variables []facts.Variable
	taken := make(map[string]bool)
	for _, file := range files {
		if !path.IsAbs(file) {
			g.Unknown("env", "variables", fmt.Sprintf("NCCL_CONF_FILE=%s depends on the working directory of the job", escape.Printable(file, 200)), hintConf)
			continue
		}
		b, err := g.Host.Read(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if file == env["NCCL_CONF_FILE"] { // NCCL does not report it.
				g.Unknown("env", "variables", fmt.Sprintf("NCCL_CONF_FILE names %s, which does not exist", escape.Printable(file, 200)), hintConf)
			}
			continue
		case err != nil:
			g.Unknown("env", "variables", err.Error(), gather.HintFor(err))
			continue
		}
		settings, broken := parseConf(b)
		for _, bad := range broken {
			g.Unknown("env", "variables", file+":"+bad, "correct or remove the line")
		}
		for _, s := range settings {
			_, inEnv := env[s.Name]
			s.Source = file
			s.Effective = !inEnv && !taken[s.Name]
			taken[s.Name] = true
			if host.SteersCommunication(s.Name) {
				variables = append(variables, s)
			}
		}
	}
	return variables
}

const hintConf = "set NCCL_CONF_FILE to the absolute path of a readable file"

// parseConf parses a configuration file as NCCL does (setEnvFile, NCCL src/misc/param.cc): everything before the first = is the
// name, blanks included.
func parseConf(b []byte) (settings []facts.Variable, broken []string) {
	number := 0
	refuse := func(why string) { broken = append(broken, fmt.Sprintf("%d: %s", number, why)) }
	for line := range bytes.Lines(b) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if len(settings) == maxVariables || len(broken) == maxVariables {
			refuse("too many lines; the rest was not read")
			break
		}
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok:
			refuse("not NAME=value; the line has no effect")
		case !IsVariableName(name):
			refuse(fmt.Sprintf("all of %.60q is taken as the variable's name; the line has no effect", name))
		default:
			settings = append(settings, facts.Variable{Name: name, Value: escape.Printable(value, confValue), Line: number})
		}
	}
	return settings, broken
}

// IsVariableName reports whether a program could look up the name.
func IsVariableName(name string) bool {
	return name != "" && len(name) <= confValue && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
}

// SteersCommunication reports whether a variable of this name controls how GPUs communicate.
func SteersCommunication(name string) bool { return host.SteersCommunication(name) }
