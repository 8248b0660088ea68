// Command gpudoctor examines how the GPUs of a machine talk to each other, and says what to do where they do not.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

const (
	exitOK       = 0 // Nothing was found at or above --fail-on.
	exitFindings = 1 // Something was.
	exitError    = 2 // Wrong usage, bad input, or a fault of the program.
	exitUnproven = 3 // With --strict: what the verdict needs could not be had.
)

func main() {
	checks.ChildMain()
	if err := checkLimits(); err != nil {
		complaint.Write(os.Stderr, complaint.Hinted(err, "raise it with ulimit"))
		os.Exit(exitError)
	}
	if err := checks.Root(); err != nil {
		complaint.Write(os.Stderr, complaint.Hinted(err, "run it under a seccomp filter that allows getpid"))
		os.Exit(exitError)
	}
	// The program lives for seconds, and garbage may lie where it is: with half as much again as is kept, a
	// recorded host of 8 GPUs takes 120 MB. Long texts and large recordings stay within the limit.
	debug.SetGCPercent(150)
	debug.SetMemoryLimit(192 << 20)
	checks.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run runs the command line and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	ignoreEmptyVariables()
	out := &stdio.Output{Writer: stdout}
	err := runLine(ctx, newApp(out), args)
	if stopped, ok := errors.AsType[stopped](context.Cause(ctx)); ok {
		return stopped.ExitCode()
	}
	var verdict verdictError
	if failure := out.Failure(); failure != nil && (err == nil || errors.As(err, &verdict)) {
		err = failure
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &verdict):
		return verdict.code
	}
	complaint.Write(stderr, err)
	return exitError
}

// runLine runs a command line, or answers what may come next in one.
func runLine(ctx context.Context, app *cli.App, args []string) error {
	app.Setup()
	if len(args) > 2 && args[1] == completeQuestion {
		return stdio.WriteText(app.Writer, complete(app, args[2:]))
	}
	arranged, err := arrange(ctx, app, args)
	if err != nil {
		return err
	}
	err = app.RunContext(ctx, arranged)
	if _, ok := errors.AsType[verdictError](err); ok {
		return err
	}
	return explained(err, settingsOf(app))
}

// ignoreEmptyVariables takes a variable that is set to nothing, as CI systems
// do with one that has no value, for one that is not set.
func ignoreEmptyVariables() {
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); value == "" && strings.HasPrefix(name, "GPUDOCTOR_") {
			_ = os.Unsetenv(name) // It fails for names that cannot be set alone.
		}
	}
}

func newApp(stdout io.Writer) *cli.App {
	cli.VersionPrinter = func(c *cli.Context) { _ = printVersion(c.App.Writer) } // See stdio.Output.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "print the version, the commit and the digest of the rules, and exit", DisableDefaultText: true}
	cli.HelpFlag = &cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show this help and exit", DisableDefaultText: true}
	cli.FlagStringer = describeFlag
	app := &cli.App{
		Name:                      "gpudoctor",
		Usage:                     "diagnose communication between the GPUs of a machine",
		Version:                   version,
		Metadata:                  map[string]any{},
		Writer:                    stdout,
		ErrWriter:                 io.Discard, // Errors are told once, in run.
		DisableSliceFlagSeparator: true,       // A file's name may hold a comma.
		CustomAppHelpTemplate:     helpTexts()["the program"],
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				hints := append(meantAs(c), "gpudoctor --help lists the commands")
				return complaint.UnknownName("command", c.Args().First(), commandNames(c.App.Commands), hints...)
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			checkCommand(), adviseCommand(), imageCommand(), topoCommand(), probeCommand(), snapshotCommand(), factsCommand(), diffCommand(), fleetCommand(), explainCommand(), rulesCommand(), textsCommand(),
			completionCommand(), versionCommand(),
		},
	}
	prepare(app.Commands)
	return app
}

// prepare sets what is the same for all commands. Their HelpName is the command
// with those above it; the library sets that of the outermost.
func prepare(commands []*cli.Command) {
	for _, c := range commands {
		c.OnUsageError = usageError
		c.HideHelpCommand = true
		c.CustomHelpTemplate = helpTexts()["a command"]
		name := cmp.Or(strings.TrimPrefix(c.HelpName, "gpudoctor "), c.Name)
		c.Description = strings.ReplaceAll(helpTexts()[name], "{targets}", emit.List())
		if len(c.Subcommands) > 0 {
			c.CustomHelpTemplate = helpTexts()["a command of commands"]
			c.Action = groupAction
			for _, sub := range c.Subcommands {
				sub.HelpName = "gpudoctor " + c.Name + " " + sub.Name
			}
			prepare(c.Subcommands)
		} else {
			action := c.Action
			c.Action = func(c *cli.Context) error {
				if err := refused(c); err != nil {
					return err
				}
				return action(c)
			}
		}
	}
}

func groupAction(c *cli.Context) error {
	name, all := c.Command.Name, commandNames(c.Command.Subcommands)
	if c.Args().Present() {
		return complaint.UnknownName("command", name+" "+c.Args().First(), prefixed(name+" ", all), c.Command.HelpName+" --help lists the commands")
	}
	return complaint.Hinted(errors.New(name+" needs a command"), "one of: "+join(prefixed(c.Command.HelpName+" ", all)))
}

func prefixed(text string, names []string) []string {
	return lines.Map(names, func(name string) string { return text + name })
}

// verdictError makes the program exit with the code of a verdict. It has no message: the report contains it.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// verdict is the error of an exit code, nil for 0.
func verdict(code int) error {
	if code == exitOK {
		return nil
	}
	return verdictError{code}
}

func join(names []string) string { return strings.Join(names, ", ") }

// What the program needs, measured on Linux 6.18 with Go 1.26 and 2 cores: 1.8 to 2.1 GiB of address space (the
// runtime's tables, and for each of 8 to 11 threads 8 MiB of stack and 64 MiB for malloc; a busy machine has more
// threads), 255 MiB of data, 27 open files.
const (
	leastAddressSpace = 4 << 30
	leastData         = 512 << 20
	leastFiles        = 64
)

// checkLimits returns an error where a limit is lower than what the program needs. Under far lower limits, the Go
// runtime ends before main.
func checkLimits() error {
	for _, l := range []struct {
		which       int
		name, flag  string
		least, unit uint64
		unitName    string
	}{
		{unix.RLIMIT_AS, "address space", "-v", leastAddressSpace, 1 << 20, " MiB"},
		{unix.RLIMIT_DATA, "data", "-d", leastData, 1 << 20, " MiB"},
		{unix.RLIMIT_NOFILE, "open files", "-n", leastFiles, 1, ""},
	} {
		var r unix.Rlimit
		if unix.Getrlimit(l.which, &r) == nil && r.Cur < l.least {
			return fmt.Errorf("the limit on %s (ulimit %s) is %d%s; gpudoctor needs %d%s", l.name, l.flag, r.Cur/l.unit, l.unitName, l.least/l.unit, l.unitName)
		}
	}
	return nil
}
