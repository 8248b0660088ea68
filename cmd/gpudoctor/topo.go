package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

func topoCommand() *cli.Command {
	return &cli.Command{
		Name:  "topo",
		Usage: "show how the GPUs and NICs are connected, and where the problems are",
		Description: `Prints the machine as a tree: NUMA nodes, root ports, PCIe switches, GPUs and
NICs, with the generation, width and rate of each link. Problems are marked where
they occur. Below it are the nearest NICs, NVMe drives and CPUs of each GPU, and what
follows from how the machine is built, such as a narrow link above a GPU. topo moves no
data between GPUs; gpudoctor check does.

gpudoctor check -o report.html draws the same topology.`,
		Flags: []cli.Flag{fromFlag, withFlag, deadlineFlag, maxBytesFlag, policyFlag, redactFlag, noRedactFlag, colorFlag},
		Action: func(c *cli.Context) error {
			r, err := readMachine(c)
			if err != nil {
				return err
			}
			r.options.Probe = probe.Off
			d, err := diagnoseShown(c.Context, r)
			if d == nil {
				return err
			}
			shown := readRedaction(c).shown(d)(stdio.IsFile(c.App.Writer))
			return stdio.Write(c.App.Writer, func(w io.Writer) error { return report.WriteTopology(w, shown, style(c)) })
		},
	}
}
