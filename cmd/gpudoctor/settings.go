package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
)

// perCall are the flags that no file sets. What is examined and which file is written is for each call to say. A file that
// came with a folder must neither run rules nor show names and secrets nor disturb the jobs of others.
var perCall = []string{
	fromFlag.Name, withFlag.Name, targetFlag.Name, platformFlag.Name, plainHTTPFlag.Name, "output", "baseline", "for", "help", "version",
	policyFlag.Name, waiveFlag.Name, noRedactFlag.Name, busyFlag.Name,
}

// opposites are flags of which the command line gives one: the file's other one is left out.
var opposites = map[string]string{redactFlag.Name: noRedactFlag.Name, verboseFlag.Name: quietFlag.Name, quietFlag.Name: verboseFlag.Name}

func fileKeys(l *line) []settings.Key {
	var keys []settings.Key
	for _, c := range leaves(l.App.Commands) {
		for _, f := range c.Flags {
			name := f.Names()[0]
			_, list := f.(*cli.StringSliceFlag)
			if key := (settings.Key{Name: name, Bool: !takesValue(f), List: list}); !slices.Contains(keys, key) && !slices.Contains(perCall, name) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// addSettings adds to the command line what the file sets and neither it nor the environment
// does, for flags that the command has. It returns what is in force.
func addSettings(ctx context.Context, l *line) (set settings.Settings, err error) {
	c := l.Command()
	given := func(name string) bool {
		return slices.ContainsFunc(l.Flags, func(a argument) bool { return a.Name == name })
	}
	if c == nil || len(c.Flags) == 0 || l.Misnamed() || given(cli.HelpFlag.Names()[0]) {
		return set, nil
	}
	set, err = files.Within(ctx, deadline.Silence, func() (settings.Settings, error) { return settings.Load(fileKeys(l)) })
	if err != nil {
		return set, err
	}
	all := set.All
	set.All = nil
	for _, f := range c.Flags {
		name := f.Names()[0]
		at := slices.IndexFunc(all, func(one settings.Setting) bool { return one.Key == name })
		ofProbe := name == probeFlag.Name || name == waitFlag.Name
		inEnvironment := slices.ContainsFunc(docOf(f).GetEnvVars(), func(variable string) bool { return os.Getenv(variable) != "" })
		if at < 0 || given(name) || given(opposites[name]) || inEnvironment || given(fromFlag.Name) && ofProbe {
			continue
		}
		set.All = append(set.All, all[at])
		for _, value := range all[at].Values {
			l.Flags = append(l.Flags, argument{Name: name, Typed: "--" + name, Value: value, Given: true, Known: true, Takes: takesValue(f)})
		}
	}
	return set, nil
}

// explained adds to an error which line of the file set what it speaks of.
func explained(err error, set settings.Settings) error {
	for _, one := range set.All {
		speaks := err != nil && (strings.Contains(err.Error(), "--"+one.Key) || slices.ContainsFunc(one.Values, func(value string) bool {
			return len(value) > 3 && strings.Contains(err.Error(), value)
		}))
		if speaks {
			err = complaint.Hinted(err, one.Place()+" sets "+one.Key)
		}
	}
	return err
}

// tellSettings says that the file is ignored, or to a person who looks on what it sets.
func tellSettings(set settings.Settings, quiet bool) {
	if set.Ignored != "" {
		_, _ = fmt.Fprintln(os.Stderr, "gpudoctor: "+set.Ignored)
	}
	keys := lines.Map(set.All, func(one settings.Setting) string { return one.Key })
	if set.Waivers != nil {
		keys = append(keys, settings.WaiversKey)
	}
	if len(keys) > 0 && !quiet {
		tell("gpudoctor: %s sets %s", settings.Here, join(keys))
	}
}

const settingsKey = "settings"

func settingsOf(app *cli.App) settings.Settings {
	set, _ := app.Metadata[settingsKey].(settings.Settings)
	return set
}

// readWaivers reads the waivers that are in force for a command: those of the file in the
// current directory, and of the file that --waive names.
func readWaivers(ctx context.Context, set settings.Settings, file string) ([]waivers.Waiver, error) {
	all, err := waivers.Parse(settings.Here, set.Waivers)
	if err != nil || file == "" {
		return all, err
	}
	more, err := files.Within(ctx, deadline.Silence, func() ([]waivers.Waiver, error) { return waivers.Load(file) })
	if fault, ok := errors.AsType[complaint.Error](err); ok && len(fault.Hints) == 0 {
		err = complaint.Hinted(err, "--"+waiveFlag.Name+" takes a file with the key "+settings.WaiversKey+", and a list of waivers below it")
	}
	return append(all, more...), err
}
