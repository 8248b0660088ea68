package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
)

// perCall are the flags that no file sets: what is examined and which file is written is
// for each call to say.
var perCall = []string{fromFlag.Name, withFlag.Name, targetFlag.Name, platformFlag.Name, plainHTTPFlag.Name, "output", "baseline", "for", "help", "version"}

// ownOnly are the flags that only the user's own file sets. They run rules, show names
// and secrets, or disturb the jobs of others, which a file that came with a folder must
// not.
var ownOnly = []string{policyFlag.Name, waiveFlag.Name, noRedactFlag.Name, busyFlag.Name}

// opposites are flags of which the command line gives one: a file's other one is left out.
var opposites = map[string]string{
	redactFlag.Name: noRedactFlag.Name, noRedactFlag.Name: redactFlag.Name, verboseFlag.Name: quietFlag.Name, quietFlag.Name: verboseFlag.Name,
}

// applied are the settings of files that are in force for a command.
type applied struct {
	all     []settings.Setting
	ignored []string
	// waivers is the list of waivers in the file in the current directory.
	waivers *yaml.Node
}

// fileKeys are the flags that a file may set.
func fileKeys(l *line) []settings.Key {
	var keys []settings.Key
	for _, c := range leaves(l.App.Commands) {
		for _, f := range c.Flags {
			name := f.Names()[0]
			known := slices.ContainsFunc(keys, func(k settings.Key) bool { return k.Name == name })
			if known || slices.Contains(perCall, name) {
				continue
			}
			_, list := f.(*cli.StringSliceFlag)
			keys = append(keys, settings.Key{Name: name, Bool: !takesValue(f), List: list, Own: slices.Contains(ownOnly, name)})
		}
	}
	return keys
}

// addSettings adds to the command line what files set and neither it nor the environment
// does, for flags that the command has.
func addSettings(ctx context.Context, l *line) (*applied, error) {
	c := l.Command()
	given := func(name string) bool {
		return slices.ContainsFunc(l.Flags, func(a argument) bool { return a.Name == name })
	}
	if c == nil || len(c.Flags) == 0 || l.Misnamed() || given(cli.HelpFlag.Names()[0]) {
		return &applied{}, nil
	}
	set, err := files.Within(ctx, deadline.Silence, func() (settings.Settings, error) { return settings.Load(fileKeys(l)) })
	if _, ok := errors.AsType[complaint.Error](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, complaint.Hinted(fmt.Errorf("read %s: %w", settings.Here, err), "run gpudoctor in another folder")
	}
	out := &applied{ignored: set.Ignored, waivers: set.Waivers}
	for _, f := range c.Flags {
		name := f.Names()[0]
		one, isSet := set.Of(name)
		if !isSet || given(name) || given(opposites[name]) || inEnvironment(f) || given(fromFlag.Name) && ofProbe(name) {
			continue
		}
		out.all = append(out.all, one)
		for _, value := range one.Values {
			l.Flags = append(l.Flags, argument{Name: name, Typed: "--" + name, Value: value, Given: true, Known: true, Takes: takesValue(f)})
		}
	}
	return out, nil
}

// ofProbe reports whether a flag is about transfers on this machine.
func ofProbe(name string) bool {
	return name == probeFlag.Name || name == busyFlag.Name || name == waitFlag.Name
}

// inEnvironment reports whether a variable sets the flag.
func inEnvironment(f cli.Flag) bool {
	return slices.ContainsFunc(docOf(f).GetEnvVars(), func(name string) bool { return os.Getenv(name) != "" })
}

// explain adds to an error which file set what it speaks of.
func (a *applied) explain(err error) error {
	var verdict verdictError
	if err == nil || errors.As(err, &verdict) {
		return err
	}
	for _, one := range a.all {
		speaks := strings.Contains(err.Error(), "--"+one.Key)
		for _, value := range one.Values {
			speaks = speaks || len(value) > 3 && strings.Contains(err.Error(), value)
		}
		if speaks {
			err = complaint.Hinted(err, one.Place()+" sets "+one.Key)
		}
	}
	return err
}

// tell says to a person who looks on that a file in the current directory sets
// something, or that it is ignored.
func (a *applied) tell(quiet bool) {
	for _, remark := range a.ignored {
		_, _ = fmt.Fprintf(os.Stderr, "gpudoctor: %s\n", remark)
	}
	here := lines.Filter(a.all, func(one settings.Setting) bool { return one.File == settings.Here })
	keys := lines.Map(here, func(one settings.Setting) string { return one.Key })
	if a.waivers != nil {
		keys = append(keys, settings.WaiversKey)
	}
	if len(keys) > 0 && !quiet {
		tell("gpudoctor: %s sets %s", settings.Here, join(keys))
	}
}

// settingsKey is where the app keeps what files set.
const settingsKey = "settings"

// appliedTo are the settings that are in force for a command.
func appliedTo(c *cli.Context) *applied {
	a, ok := c.App.Metadata[settingsKey].(*applied)
	if !ok {
		return &applied{}
	}
	return a
}
