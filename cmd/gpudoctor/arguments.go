package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/arguments"
)

// arrange puts flags before words, so that they may be typed in any order.
// "help COMMAND" is "COMMAND --help". What files set is added.
func arrange(ctx context.Context, app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	l := arguments.Parse(app, args[1:])
	if len(l.Path) == 1 && l.Path[0].HasName("help") {
		l = arguments.Parse(app, append(slices.Clone(l.Words), "--help"))
	}
	if _, err := l.Arranged(); err != nil { // The command line is at fault before a file is.
		return nil, err
	}
	set, err := addSettings(ctx, l)
	if err != nil {
		return nil, err
	}
	app.Metadata[settingsKey] = set
	arranged, err := l.Arranged()
	return append([]string{args[0]}, arranged...), set.explain(err)
}
