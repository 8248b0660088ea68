package remedies

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// transient are commands whose effect the next boot ends; those of passing are over with the process, and those of
// lasting outlive a boot, or repair what then stays repaired.
var (
	transient = regexp.MustCompile(`^(sysctl -w|setpci|mount|modprobe -r|modprobe) `)
	passing   = regexp.MustCompile(`^(export|numactl) `)
	lasting   = regexp.MustCompile(`^(systemctl enable|sudo usermod|nvidia-smi (mig|-i|--gpu-reset)|amd-smi reset|systemctl (reboot|restart|stop|start)|find /dev/shm)`)
	asRoot    = regexp.MustCompile(`^(sysctl|setpci|mount|modprobe|systemctl|nvidia-smi (mig|-i|--gpu-reset)|amd-smi reset)`)
)

// reloads are remedies whose commands load a driver afresh: what they do is a repair, which a boot does as well.
var reloads = []string{"reboot-or-reload-driver", "reload-amd-driver"}

// TestLasts checks what each remedy takes, how long it lasts and of what kind it is to what it does.
func TestLasts(t *testing.T) {
	checked := 0
	for _, r := range builtin(t).Remedies() {
		a := r.Apply
		check := func(is bool, why string) {
			expect.That(t, is, "%s is a %s, takes %v and lasts %s: %s", r.ID, r.Kind, r.Needs, r.Lasts, why)
		}
		takes := func(n Need) bool { return slices.Contains(r.Needs, n) }
		stays := len(a.KernelCommandLine)+len(a.Modprobe)+len(a.Sysctl) > 0
		forGood := r.Lasts == "forever"
		check(len(a.KernelCommandLine) == 0 || forGood && takes(NeedRoot) && takes(NeedReboot), "a kernel parameter takes root and a reboot, and lasts")
		check(len(a.Modprobe) == 0 || forGood && takes(NeedRoot) && (takes(NeedReboot) || takes(NeedDriverReload)), "a module's option takes root and a reload of the module, and lasts")
		check(len(a.Sysctl) == 0 || forGood && takes(NeedRoot), "a file of sysctl.d takes root, and lasts")
		variables := len(a.Environment)+len(a.Unset) > 0 && !stays
		check(!variables || r.Lasts == "job" && slices.Equal(r.Needs, []Need{NeedJobRestart}), "a variable takes a restart of the job, and lasts as long")
		flags := len(a.Docker)+len(a.Kubernetes) > 0 && len(a.Environment)+len(a.Commands) == 0
		check(!flags || takes(NeedContainerRestart) || takes(NeedJobRestart), "a container's flag takes a new container")
		check(forGood || !slices.Equal(r.Needs, []Need{NeedContainerRestart}), "how a container is started lasts")
		for _, n := range []Need{NeedDriverReload, NeedReboot, NeedBIOS} {
			check(!takes(n) || takes(NeedRoot), string(n)+" takes root")
		}
		check(!takes(NeedBIOS) || takes(NeedReboot), "a setting of the firmware takes a reboot")
		check(forGood || !takes(NeedImageRebuild) && !takes(NeedBIOS) && !takes(NeedHands), "a new image, a setting of the firmware and a repair last")
		for _, c := range a.Commands {
			checked++
			check(!asRoot.MatchString(c) || takes(NeedRoot), c+" takes root")
			switch {
			case passing.MatchString(c):
				check(r.Lasts == "job", c+" is over with the process")
			case transient.MatchString(c):
				check(stays || slices.Contains(reloads, r.ID) || r.Lasts == "boot", c+" lasts until the next boot")
			case lasting.MatchString(c):
				check(forGood, c+" lasts")
			default:
				t.Errorf("%s: how long does %q last?", r.ID, c)
			}
		}
		if len(a.Environment) > 0 {
			for _, flag := range a.Docker {
				expect.That(t, regexp.MustCompile(`^-e (\w+)=`).FindStringSubmatch(flag) == nil, "%s: %s is derived from environment", r.ID, flag)
			}
		}
	}
	expect.That(t, checked != 0, "no remedy has commands")
}

// TestNVLSLoss checks that what it costs to do without NVLink SHARP is said once,
// in the rules, and that the remedies say the same.
func TestNVLSLoss(t *testing.T) {
	stated := data.Read[struct{ Losses map[string]string }]("variables").Losses["nvls"]
	found := 0
	for _, r := range builtin(t).Remedies() {
		if r.Apply.Environment["NCCL_NVLS_ENABLE"] == "0" || r.Apply.Environment["NCCL_CUMEM_ENABLE"] == "0" {
			found++
			expect.That(t, strings.Contains(r.Cost, stated), "%s: cost = %q, which does not say that %s", r.ID, r.Cost, stated)
		}
	}
	expect.That(t, found != 0, "no remedy does without NVLink SHARP")
}
