package emit

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// yamlString quotes a string for YAML, of which JSON's strings are a part.
func yamlString(s string) string { return strconv.Quote(s) }

// listOf writes a list of strings below a key.
func (f *file) listOf(margin, key string, items []string) {
	if len(items) == 0 {
		return
	}
	f.line("%s%s:", margin, key)
	for _, item := range items {
		f.line("%s  - %s", margin, yamlString(item))
	}
}

// names are those of the settings of a kind.
func (f *file) names(kind plan.Kind) []string {
	var all []string
	for _, s := range f.of(kind) {
		all = append(all, s.Name)
	}
	return all
}

func writeCompose(f *file) {
	f.comment("", "usage: IMAGE=... docker compose -f "+f.name+" up")
	f.line("")
	f.reasons(f.settings, composed)
	f.line("services:")
	f.line("  job:")
	f.line("    image: ${IMAGE:?set IMAGE to the image of the job}")
	if size := f.first(plan.SharedMemory, ""); size != "" {
		f.line("    shm_size: %s", size)
	}
	f.listOf("    ", "cap_add", f.names(plan.Capability))
	var devices []string
	for _, name := range f.names(plan.Device) {
		devices = append(devices, name+":"+name)
	}
	f.listOf("    ", "devices", devices)
	f.listOf("    ", "group_add", f.names(plan.Group))
	if ipc := f.first(plan.Namespace, "ipc"); ipc != "" {
		f.line("    ipc: %s", ipc)
	}
	if network := f.first(plan.Namespace, "network"); network != "" {
		f.line("    network_mode: %s", network)
	}
	if pids := f.first(plan.Limit, "pids"); pids != "" {
		f.line("    pids_limit: %s", pids)
	}
	f.composeLimits()
	var mounts []string
	for _, s := range f.of(plan.Mount) {
		mounts = append(mounts, s.Name+":"+s.Value)
	}
	f.listOf("    ", "volumes", mounts)
	if all := f.of(plan.Variable, plan.Unset); len(all) > 0 {
		f.line("    environment:")
		for _, s := range all {
			if s.Kind == plan.Unset {
				f.line("      %s: # Without a value, and not set where compose runs, it is removed.", s.Name)
			} else {
				f.line("      %s: %s", s.Name, yamlString(strings.ReplaceAll(s.Value, "$", "$$")))
			}
		}
	}
	if f.first(plan.GPUs, "") != "" {
		f.line("    deploy:")
		f.line("      resources:")
		f.line("        reservations:")
		f.line("          devices:")
		f.line("            - driver: nvidia")
		f.line("              count: all")
		f.line("              capabilities: [gpu]")
	}
}

// composeLimits writes the limits of processes.
func (f *file) composeLimits() {
	begun := false
	for _, s := range f.of(plan.Limit) {
		if s.Name == "pids" {
			continue
		}
		if !begun {
			f.line("    ulimits:")
			begun = true
		}
		soft, hard, both := strings.Cut(s.Value, ":")
		if !both {
			f.line("      %s: %s", s.Name, soft)
			continue
		}
		f.line("      %s:", s.Name)
		f.line("        soft: %s", soft)
		f.line("        hard: %s", hard)
	}
}

// composed is a setting as people find it in a Compose file.
func composed(s plan.Setting) string {
	switch s.Kind {
	case plan.GPUs:
		return "devices: gpu"
	case plan.SharedMemory:
		return "shm_size"
	case plan.Limit, plan.Capability, plan.Device, plan.Group, plan.Variable, plan.Unset:
		return s.Name
	case plan.Namespace:
		return s.Name + ": " + s.Value
	case plan.Mount:
		return s.Name
	default: // Compose does not set it.
		return ""
	}
}

func writePod(f *file) {
	f.comment("", "usage: enter the image, then kubectl apply -f "+f.name)
	f.line("")
	f.reasons(f.settings, podded)
	f.pluginNotes()
	f.line("apiVersion: v1")
	f.line("kind: Pod")
	f.line("metadata:")
	f.line("  name: gpu-job")
	f.line("spec:")
	f.line("  restartPolicy: Never")
	for _, s := range f.of(plan.Namespace) {
		if s.Value == "host" {
			f.line("  %s: true", map[string]string{"ipc": "hostIPC", "network": "hostNetwork"}[s.Name])
		}
	}
	f.line("  containers:")
	f.line("    - name: job")
	f.line("      image: IMAGE # Enter the image of the job.")
	if f.plan.Vendor != "" {
		f.line("      resources:")
		f.line("        limits:")
		f.line("          %s.com/gpu: %d", f.plan.Vendor, f.gpus())
	}
	if all := f.of(plan.Variable); len(all) > 0 {
		f.line("      env:")
		for _, s := range all {
			f.line("        - name: %s", s.Name)
			f.line("          value: %s", yamlString(strings.ReplaceAll(s.Value, "$(", "$$(")))
		}
	}
	if names := f.names(plan.Capability); len(names) > 0 {
		f.line("      securityContext:")
		f.line("        capabilities:")
		f.listOf("          ", "add", names)
	}
	f.volumes()
}

// pluginNotes tells what a pod gets from the plugins of a cluster.
func (f *file) pluginNotes() {
	for _, s := range f.plan.Settings {
		if s.Kind == plan.Device && s.Name == "/dev/infiniband" {
			f.comment("", "The pod also needs the resource of the cluster's RDMA device plugin (rdma/..., or one of the SR-IOV network operator) among its limits. Its name is the cluster's own.")
		}
		if s.Kind == plan.Unset {
			f.comment("", "A pod cannot remove a variable of its image. Start the program with: env -u "+s.Name)
		}
	}
}

// volumes writes what is mounted.
func (f *file) volumes() {
	memory, mounts := f.first(plan.SharedMemory, ""), f.of(plan.Mount)
	if memory == "" && len(mounts) == 0 {
		return
	}
	f.line("      volumeMounts:")
	if memory != "" {
		f.line("        - name: shm")
		f.line("          mountPath: /dev/shm")
	}
	for i, s := range mounts {
		path, options, _ := strings.Cut(s.Value, ":")
		f.line("        - name: host-%d", i)
		f.line("          mountPath: %s", path)
		if options == "ro" {
			f.line("          readOnly: true")
		}
	}
	f.line("  volumes:")
	if memory != "" {
		f.line("    - name: shm")
		f.line("      emptyDir:")
		f.line("        medium: Memory")
		f.line("        sizeLimit: %s", remedies.SizeQuantity(memory))
	}
	for i, s := range mounts {
		f.line("    - name: host-%d", i)
		f.line("      hostPath:")
		f.line("        path: %s", s.Name)
	}
}

// podded is a setting as people find it in a pod.
func podded(s plan.Setting) string {
	switch s.Kind {
	case plan.GPUs:
		return "nvidia.com/gpu"
	case plan.SharedMemory:
		return "volume shm"
	case plan.Namespace:
		return map[string]string{"ipc": "hostIPC", "network": "hostNetwork"}[s.Name]
	case plan.Capability, plan.Variable, plan.Mount:
		return s.Name
	default: // A pod does not set it.
		return ""
	}
}
