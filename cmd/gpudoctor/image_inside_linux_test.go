package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestImagesInside checks that gpudoctor finds the same where it runs in the image: in a
// process whose root folder is that of the image.
func TestImagesInside(t *testing.T) {
	exe := expect.Value(os.Executable())(t)
	for _, c := range expect.SomeRows(9, slices.Concat(faultyImages, goodImages)) {
		if c.target != nil {
			continue // A file of the image is not the target.
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := imagetest.Write(t, c.img, imagetest.Folder)
			cmd := exec.Command(exe, "check", "--profile", "image", "--format", "json", "--no-redact")
			cmd.Args[0] = insideProgram
			cmd.Dir, cmd.Env = "/", append(slices.Clone(c.img.Env), "IMAGE_ROOT="+root, "HOME=/root")
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			if os.Getuid() != 0 { // Only root, or one in its own name space, may change its root folder.
				cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			}
			out, err := cmd.Output()
			var d report.Document
			if jsonErr := json.Unmarshal(out, &d); jsonErr != nil {
				t.Fatal(err, jsonErr)
			}
			expect.NoDiff(t, c.want, graveFindings(&d), "it")
		})
	}
}

// insideProgram is gpudoctor in another root folder.
const insideProgram = "gpudoctor-inside"

func init() {
	programs[insideProgram] = func() {
		if err := syscall.Chroot(os.Getenv("IMAGE_ROOT")); err != nil {
			panic(err)
		}
		main()
	}
}
