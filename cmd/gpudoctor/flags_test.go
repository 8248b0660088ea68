package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestHelpOf(t *testing.T) {
	for _, tt := range []struct {
		flag cli.Flag
		want flagHelp
	}{
		{&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say less", DisableDefaultText: true}, flagHelp{Names: []string{"-q", "--quiet"}, Usage: "say less"}},
		{&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: write text"}, flagHelp{Names: []string{"--format"}, Takes: "FORMAT", Usage: "write text", Default: "text"}},
		{&cli.StringFlag{Name: "only", Usage: "judge `IDS` and no others"}, flagHelp{Names: []string{"--only"}, Takes: "IDS", Usage: "judge IDS and no others"}},
		{&cli.DurationFlag{Name: "deadline", Usage: "`TIME`: stop"}, flagHelp{Names: []string{"--deadline"}, Takes: "TIME", Usage: "stop"}},
	} {
		got, ok := helpOf(tt.flag)
		diff := cmp.Diff(tt.want, got)
		expect.That(t, ok && diff == "", "(-want +got):\n%s", diff)
	}
}
