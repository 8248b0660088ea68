package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/checks/image/registry"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

type imageCase struct {
	name string
	img  imagetest.Image
	// want are the findings of medium severity and above: severity, rule and subject.
	want []string
	// target is the machine that it is judged for; nil for none.
	target *facts.TargetFacts
}

const (
	lib  = "usr/lib/x86_64-linux-gnu/"
	cuda = "usr/local/cuda-12.4/targets/x86_64-linux/lib/"
	site = "usr/lib/python3/dist-packages/"
)

func nccl(version string) string { return "\x7fELF\x02 NCCL version " + version + "\x00" }

// cudaBase is a layer as NVIDIA's images have it.
func cudaBase() imagetest.Layer {
	return imagetest.Layer{Command: "COPY cuda /usr/local # buildkit", Files: []imagetest.File{
		{Name: "etc/os-release", Content: "ID=ubuntu\nVERSION_ID=\"22.04\"\n"},
		link("bin", "usr/bin"),
		{Name: "usr/bin/true", Content: "\x7fELF"},
		link("usr/local/cuda", "cuda-12.4"),
		link(cuda+"libcudart.so.12", "libcudart.so.12.4.127"),
		{Name: cuda + "libcudart.so.12.4.127", Content: "\x7fELF\x02"},
		{Name: cuda + "stubs/libcuda.so", Content: "\x7fELF\x02", Size: 60_000},
		{Name: "etc/ld.so.conf", Content: "include /etc/ld.so.conf.d/*.conf\n"},
		{Name: "etc/ld.so.conf.d/cuda.conf", Content: "/usr/local/cuda/targets/x86_64-linux/lib\n"},
	}}
}

func ncclLayer(version, cudaVersion string) imagetest.Layer {
	return imagetest.Layer{Command: "RUN /bin/sh -c apt-get install -y libnccl2 # buildkit", Files: []imagetest.File{
		link(lib+"libnccl.so.2", "libnccl.so."+version),
		{Name: lib + "libnccl.so." + version, Content: nccl(version + "+cuda" + cudaVersion)},
	}}
}

var usual = []string{"PATH=/usr/local/cuda/bin:/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}

// issueImage is the image of the issue: a baked driver library, two NCCL, and two variables.
var issueImage = imagetest.Image{
	Env: append(slices.Clone(usual), "NCCL_P2P_DISABLE=1", "CUDA_VISIBLE_DEVICES=0"),
	Layers: []imagetest.Layer{
		cudaBase(), ncclLayer("2.18.3", "12.2"),
		{Command: "RUN /bin/sh -c pip install nvidia-nccl-cu12 # buildkit", Files: []imagetest.File{
			{Name: site + "nvidia/nccl/lib/libnccl.so.2", Content: nccl("2.26.2+cuda12.2")},
			{Name: site + "nvidia_nccl_cu12-2.26.2.dist-info/METADATA", Content: "Name: nvidia-nccl-cu12\n"},
		}},
		{Command: "RUN /bin/sh -c apt-get install -y libnvidia-compute-535 # buildkit", Files: []imagetest.File{
			link(lib+"libcuda.so.1", "libcuda.so.535.104.05"),
			{Name: lib + "libcuda.so.535.104.05", Content: "\x7fELF\x02", Size: 2 << 20},
		}},
	},
}

func oneLayer(env []string, files ...imagetest.File) imagetest.Image {
	set := slices.DeleteFunc(slices.Clone(usual), func(u string) bool {
		name, _, _ := strings.Cut(u, "=")
		return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	})
	return imagetest.Image{Env: append(set, env...), Layers: []imagetest.Layer{cudaBase(), ncclLayer("2.26.2", "12.2"), {Command: "COPY . /", Files: files}}}
}

func file(name, content string) imagetest.File { return imagetest.File{Name: name, Content: content} }

func link(name, target string) imagetest.File { return imagetest.File{Name: name, Target: target} }

func elf(name string, size int64) imagetest.File {
	return imagetest.File{Name: name, Content: "\x7fELF\x02", Size: size}
}

func wheel(name, version string) imagetest.File {
	return file(site+strings.ReplaceAll(name, "-", "_")+"-"+version+".dist-info/METADATA", "Name: "+name+"\n")
}

const full = 2 << 20 // The size of a library that is no stub.

var faultyImages = []imageCase{
	{name: "issue", img: issueImage, want: []string{"high driver-library-mismatch /usr/lib/x86_64-linux-gnu/libcuda.so.1", "high env-misconfig CUDA_VISIBLE_DEVICES", "medium env-misconfig NCCL_P2P_DISABLE", "medium nccl-in-image nccl"}},
	{name: "driver as a hard link", img: oneLayer(nil, elf(lib+"libcuda.so.535.104.05", full), imagetest.File{Name: lib + "libcuda.so.1", Target: lib + "libcuda.so.535.104.05", Hard: true}), want: []string{
		"high driver-library-mismatch /usr/lib/x86_64-linux-gnu/libcuda.so.1", "high driver-library-mismatch /usr/lib/x86_64-linux-gnu/libcuda.so.535.104.05",
	}},
	{name: "driver behind a link of folders", img: oneLayer(nil, link("lib64", "usr/lib64"), elf("usr/lib64/libcuda.so.535.104.05", full), link("usr/lib64/libcuda.so.1", "/usr/lib64/libcuda.so.535.104.05")), want: []string{
		"high driver-library-mismatch /lib64/libcuda.so.1",
	}},
	{name: "stubs on LD_LIBRARY_PATH", img: oneLayer([]string{"LD_LIBRARY_PATH=/usr/local/cuda/targets/x86_64-linux/lib/stubs:/usr/lib"}, link(cuda+"stubs/libcuda.so.1", "libcuda.so")), want: []string{
		"high driver-library-mismatch /usr/local/cuda/targets/x86_64-linux/lib/stubs/libcuda.so.1",
	}},
	{name: "a stub in the folder of libraries", img: oneLayer(nil, elf(lib+"libcuda.so.1", 60_000)), want: []string{"high driver-library-mismatch /usr/lib/x86_64-linux-gnu/libcuda.so.1"}},
	{name: "two RCCL", img: oneLayer(nil, file("opt/rocm-6.2.0/lib/librccl.so.1", "\x7fELF\x02 RCCL version 2.20.5+hip6.2\x00"), file(site+"torch/lib/librccl.so.1", "\x7fELF\x02 RCCL version 2.18.3+hip6.0\x00")), want: []string{"medium nccl-in-image rccl"}},
	{name: "NCCL_CONF_FILE", img: oneLayer([]string{"NCCL_CONF_FILE=/opt/conf/nccl.conf"}, file("opt/conf/nccl.conf", "NCCL_P2P_DISABLE=1\n")), want: []string{"medium env-misconfig NCCL_P2P_DISABLE"}},
	{name: "several variables", img: oneLayer([]string{"NCCL_IB_DISABLE=1", "NCCL_NET=Socket", "NCCL_HOSTID=node1", "HIP_VISIBLE_DEVICES=0,1", "NVIDIA_VISIBLE_DEVICES=0", "CUDA_LAUNCH_BLOCKING=1"}), want: []string{
		"high env-misconfig HIP_VISIBLE_DEVICES", "medium env-misconfig CUDA_LAUNCH_BLOCKING", "medium env-misconfig NCCL_HOSTID", "medium env-misconfig NCCL_IB_DISABLE", "medium env-misconfig NCCL_NET",
		"medium env-misconfig NVIDIA_VISIBLE_DEVICES",
	}},
	{name: "no compute", img: oneLayer([]string{"NVIDIA_DRIVER_CAPABILITIES=graphics,utility"}), want: []string{"high env-misconfig NVIDIA_DRIVER_CAPABILITIES"}},
	{name: "old driver", target: &facts.TargetFacts{Source: "--driver", Driver: "470.57.02"}, img: oneLayer(nil), want: []string{"high cuda-for-target driver"}},
	{name: "NICs without libibverbs", target: &facts.TargetFacts{Source: "t.json", Driver: "550.54.15", RDMA: []string{"mlx5"}}, img: oneLayer(nil), want: []string{"high network-libraries-missing libibverbs"}},
	{name: "NICs without their provider", target: &facts.TargetFacts{Source: "t.json", Driver: "550.54.15", RDMA: []string{"mlx5"}}, img: oneLayer(nil,
		elf(lib+"libibverbs.so.1.14.50.0", 100), link(lib+"libibverbs.so.1", "libibverbs.so.1.14.50.0")), want: []string{"high network-libraries-missing libmlx5-rdmav*.so"}},
	{name: "EFA without the plugin", target: &facts.TargetFacts{Source: "t.json", Driver: "550.54.15", RDMA: []string{"efa"}}, img: oneLayer(nil), want: []string{"high network-libraries-missing aws-ofi-nccl"}},
	{name: "NCCL older than the GPUs", target: &facts.TargetFacts{Source: "t.json", Driver: "580.95.05", GPUs: []string{"NVIDIA B200"}}, img: imagetest.Image{
		Env: usual, Layers: []imagetest.Layer{cudaBase(), ncclLayer("2.20.5", "12.4")},
	}, want: []string{"high known-fault-in-image nccl"}},
	{name: "ROCm older than the GPUs", target: &facts.TargetFacts{Source: "t.json", GPUs: []string{"AMD Radeon RX 9070 XT"}}, img: imagetest.Image{Layers: []imagetest.Layer{{Files: []imagetest.File{
		file("usr/bin/true", "x"), file("opt/rocm-6.2.3/lib/librccl.so.1", "\x7fELF\x02 RCCL version 2.20.5+hip6.2\x00"),
		elf("opt/rocm-6.2.3/lib/libamdhip64.so.6.2.60203", full),
		link("opt/rocm-6.2.3/lib/libamdhip64.so.6", "libamdhip64.so.6.2.60203"),
		elf("opt/rocm-6.2.3/lib/libhsa-runtime64.so.1.14.60203", full), file("etc/ld.so.conf", "/opt/rocm-6.2.3/lib\n"),
	}}}}, want: []string{"high known-fault-in-image rocm"}},
	{name: "a driver that a layer moves", img: imagetest.Image{Env: usual, Layers: []imagetest.Layer{
		cudaBase(), ncclLayer("2.26.2", "12.2"),
		{Files: []imagetest.File{elf("opt/old/libcuda.so.535.104.05", full), elf(lib+"libcuda.so.525.60.13", full)}},
		{Files: []imagetest.File{file("opt/.wh.old", ""), file(lib+".wh.libcuda.so.525.60.13", ""), elf(lib+"libcuda.so.550.54.15", full)}},
	}}, want: []string{"high driver-library-mismatch /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15"}},
}

// modern is a target on which everything of goodImages runs.
var modern = &facts.TargetFacts{Source: "t.json", Driver: "580.95.05", GPUs: []string{"NVIDIA H100 80GB HBM3"}, RDMA: []string{"mlx5"}}

var goodImages = []imageCase{
	{name: "CUDA base and one NCCL", img: imagetest.Image{Env: usual, Layers: []imagetest.Layer{cudaBase(), ncclLayer("2.26.2", "12.2")}}},
	{name: "PyTorch's packages", img: imagetest.Image{Env: usual, Layers: []imagetest.Layer{{Files: []imagetest.File{
		file("usr/bin/python3", "x"),
		file(site+"nvidia/nccl/lib/libnccl.so.2", nccl("2.26.2+cuda12.2")), wheel("nvidia-nccl-cu12", "2.26.2"),
		elf(site+"nvidia/cuda_runtime/lib/libcudart.so.12", 700_000), wheel("nvidia-cuda-runtime-cu12", "12.6.77"), wheel("torch", "2.7.0+cu126"),
	}}}}},
	{name: "a driver that a later layer removes", img: imagetest.Image{Env: usual, Layers: []imagetest.Layer{
		cudaBase(), ncclLayer("2.26.2", "12.2"), {Files: []imagetest.File{elf(lib+"libcuda.so.535.104.05", full)}}, {Files: []imagetest.File{file(lib+".wh.libcuda.so.535.104.05", "")}},
	}}},
	{name: "mount points of the driver", img: oneLayer(nil, file(lib+"libcuda.so.1", ""), file(lib+"libnvidia-ml.so.1", ""))},
	{name: "compatibility library", img: oneLayer(nil, elf("usr/local/cuda-12.4/compat/libcuda.so.550.54.15", full), link("usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15"))},
	{name: "one NCCL under two names", img: oneLayer(nil, link("opt/nccl/lib/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2"))},
	{name: "ROCm", img: imagetest.Image{Layers: []imagetest.Layer{{Files: []imagetest.File{
		file("usr/bin/true", "x"), file("opt/rocm-6.2.0/lib/librccl.so.1", "\x7fELF\x02 RCCL version 2.20.5+hip6.2\x00"),
		elf("opt/rocm-6.2.0/lib/libamdhip64.so.6.2.60200", full), elf("opt/rocm-6.2.0/lib/libhsa-runtime64.so.1.14.60200", full),
		file("etc/ld.so.conf", "/opt/rocm-6.2.0/lib\n"),
	}}}}},
	{name: "RDMA for the target", target: modern, img: oneLayer(nil, elf(lib+"libibverbs.so.1.14.50.0", 100), link(lib+"libibverbs.so.1", "libibverbs.so.1.14.50.0"), elf(lib+"libibverbs/libmlx5-rdmav34.so", 100))},
	{name: "EFA for the target", target: &facts.TargetFacts{Source: "t.json", Driver: "550.54.15", RDMA: []string{"efa"}}, img: oneLayer(nil,
		file("opt/amazon/ofi-nccl/lib/libnccl-net.so", "\x7fELF\x02 Initializing aws-ofi-nccl 1.9.1\x00"), elf("opt/amazon/efa/lib/libfabric.so.1.25.0", 100))},
	{name: "harmless variables", img: oneLayer([]string{"NCCL_DEBUG=WARN", "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470,driver<471", "LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64"})},
	{name: "a link in a circle, pipes and names of all kinds", img: oneLayer(nil, link("opt/a", "b"), link("opt/b", "a"), link("opt/out", "../../../../etc/passwd"), file("opt/x y\u00e9\x01", "x"))},
}

// TestImages judges each image in each form, by day some images: the findings are the same. Advice about an image is for
// its author: no variable is set or unset in a shell, and a new image is made of whatever fixes it.
func TestImages(t *testing.T) {
	learnt(t)
	advised := 0
	for _, c := range expect.SomeRows(6, slices.Concat(faultyImages, goodImages)) {
		for _, form := range append(slices.Clone(imagetest.Forms), imagetest.Registry) {
			d := judgeImage(t, imagetest.Write(t, c.img, form), c.target)
			expect.NoDiff(t, c.want, graveFindings(d), "%s, %s", c.name, form)
			wantExit := 0
			if slices.ContainsFunc(c.want, func(w string) bool { return strings.HasPrefix(w, "high") || strings.HasPrefix(w, "critical") }) {
				wantExit = 1
			}
			expect.That(t, d.Verdict.ExitCode == wantExit, "%s, %s: exit code %d (%s), want %d", c.name, form, d.Verdict.ExitCode, d.Verdict.Reason, wantExit)
			expect.That(t, len(c.want) != 0 || d.Verdict.State == report.Healthy, "%s, %s: %s: %v", c.name, form, d.Verdict.State, d.Verdict.Reasons)
			for _, a := range d.Advice {
				advised++
				shell := slices.ContainsFunc(a.Apply.Commands, func(line string) bool { return strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "unset ") })
				expect.That(t, !shell && len(a.Apply.Unset) == 0, "%s, %s: %s: %+v", c.name, form, a.Title, a.Apply)
			}
			if c.name == "stubs on LD_LIBRARY_PATH" {
				expect.That(t, strings.Contains(strings.Join(d.Advice[0].Apply.Steps, " "), "remove /usr/local/cuda/targets/x86_64-linux/lib/stubs from LD_LIBRARY_PATH"), "%s: %+v", form, d.Advice[0].Apply)
			}
		}
	}
	expect.That(t, advised != 0, "there was no advice")
}

func judgeImage(t *testing.T, at string, target *facts.TargetFacts) *report.Document {
	t.Helper()
	s := source{from: []string{at}, image: true}
	s.remote = expect.Value(findImage(t.Context(), at))(t)
	d := expect.Value(diagnose(context.Background(), request{profile: rules.Image, failOn: report.Threshold(rules.High), source: s, target: target}))(t)
	return d
}

func graveFindings(d *report.Document) []string {
	said := expect.Map(grave(d.Findings), func(f rules.Finding) string { return fmt.Sprintf("%s %s %s", f.Severity, f.Rule, f.Subject) })
	slices.Sort(said)
	return slices.Compact(said)
}

// TestImageRefused checks that an image that cannot be read, and a wrong use of the flags,
// end with exit code 2, one line, a hint, and no report.
func TestImageRefused(t *testing.T) {
	dir := t.TempDir()
	made := func(name, content string) string {
		at := filepath.Join(dir, name)
		expect.NoError(t, os.WriteFile(at, []byte(content), 0o600))
		return at
	}
	good := imagetest.Write(t, goodImages[0].img, imagetest.Docker)
	raw := expect.Value(os.ReadFile(good))(t)
	output := filepath.Join(dir, "report.json")
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no argument":          {[]string{"image"}, "image takes one image, got 0"},
		"two":                  {[]string{"image", good, good}, "image takes one image, got 2"},
		"not there":            {[]string{"image", filepath.Join(dir, "nothing")}, "no such file"},
		"no registry":          {[]string{"image", "127.0.0.1:1/org/app:1"}, "the registry cannot be reached"},
		"a name alone":         {[]string{"image", "ubuntu:22.04"}, "no such file"},
		"no reference":         {[]string{"image", "docker://Ubuntu"}, "not a reference"},
		"--from a registry":    {[]string{"check", "--from", "docker://127.0.0.1:1/org/app:1"}, "the registry cannot be reached"},
		"another platform":     {[]string{"image", "--platform", "linux/arm64", good}, "it holds no image for linux/arm64: it is for linux/amd64"},
		"a text":               {[]string{"image", made("a.log", strings.Repeat("NCCL INFO\n", 100))}, "not a container image"},
		"half an archive":      {[]string{"image", made("half.tar", string(raw[:len(raw)/2]))}, "read "},
		"the profile training": {[]string{"check", "--profile", "training", "--from", good}, "--profile image"},
		"with a log":           {[]string{"check", "--from", good, "--with", made("b.log", "NCCL INFO\n")}, "cannot be combined"},
		"a driver":             {[]string{"image", "--driver", "new", good}, "--driver"},
		"a target":             {[]string{"image", "--target", filepath.Join(dir, "b.log"), good}, "neither a snapshot nor a facts file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := inProcess(append(tt.args, "-o", output)...)
			first, rest, _ := strings.Cut(stderr, "\n")
			expect.That(t, code == exitError && stdout == "" && strings.HasPrefix(first, "gpudoctor: ") && strings.Contains(first, tt.want) && strings.HasPrefix(rest, "hint: "), "exit code %d, %q, %q", code, stdout, stderr)
			expect.Fails(os.Stat(output))(t, fs.ErrNotExist, "a report was written")
		})
	}
}

// TestImageUnknown checks that what is not known of an image is not healthy.
func TestImageUnknown(t *testing.T) {
	empty := imagetest.Image{Env: usual, Layers: []imagetest.Layer{{Files: []imagetest.File{file("usr/bin/true", "x"), file("etc/passwd", "x"), file("bin/sh", "x"), file("var/x", "x")}}}}
	bare := imagetest.Write(t, goodImages[0].img, imagetest.Folder)
	if err := os.Remove(filepath.Join(bare, "etc", "rc")); err != nil { // Without it nobody knows whose variables these are.
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		imagetest.Write(t, empty, imagetest.Layout): "the image holds no library of CUDA, ROCm, NCCL or RCCL",
		imagetest.Write(t, empty, imagetest.Folder): "the image holds no library of CUDA, ROCm, NCCL or RCCL",
		bare: "a root folder does not hold the variables of its image",
	} {
		for _, strict := range []bool{false, true} {
			wantCode := map[bool]int{false: exitOK, true: exitUnproven}[strict]
			code, stdout, stderr := inProcess("image", at, fmt.Sprint("--strict=", strict))
			expect.That(t, code == wantCode && strings.Contains(strings.Join(strings.Fields(stdout), " "), want) && !strings.Contains(stdout, "Healthy"), "%s: exit code %d, want %d\n%s%s", want, code, wantCode, stdout, stderr)
		}
	}
}

// TestImageFacts checks that the facts of an image can be written and judged later, and that
// a file that was not kept is not taken for one that does not exist.
func TestImageFacts(t *testing.T) {
	img := issueImage
	img.Env = append(slices.Clone(img.Env), "NCCL_CONF_FILE=/opt/site.cfg")
	img.Layers = append(slices.Clone(img.Layers), imagetest.Layer{Files: []imagetest.File{file("opt/site.cfg", "NCCL_DEBUG=INFO\n")}})
	for _, form := range []string{imagetest.Layout, imagetest.Docker} {
		code, stdout, stderr := inProcess("facts", "--from", imagetest.Write(t, img, form), "--no-redact")
		expect.Must(t, code == exitOK, "%s: exit code %d: %s", form, code, stderr)
		f := decoded[facts.Facts](t, stdout)
		set := expect.Map(f.Env.Variables, func(v facts.Variable) string { return v.Name + "=" + v.Value })
		expect.That(t, slices.Contains(set, "NCCL_DEBUG=INFO") && f.Image != nil && len(f.Image.Layers) == 5 && len(f.Unknown) == 0, "got %v, %+v, %v", set, f.Image, f.Unknown)
		at := filepath.Join(t.TempDir(), "facts.json")
		expect.NoError(t, os.WriteFile(at, []byte(stdout), 0o600))
		d := expect.Value(diagnose(context.Background(), requestFor(rules.Image, at)))(t)
		expect.NoDiff(t, faultyImages[0].want, graveFindings(d), "it")
	}
	d := judgeImage(t, imagetest.Write(t, img, imagetest.Folder), nil)
	expect.That(t, slices.ContainsFunc(d.Unknown, func(u facts.Unknown) bool { return strings.Contains(u.Reason, "its content was not kept") }), "unknown: %v", d.Unknown)
}

// TestImagePlatform checks that the target decides which image of several is read, unless the command line does.
func TestImagePlatform(t *testing.T) {
	var platforms []v1.Platform
	var images []v1.Image
	for _, arch := range []string{"amd64", "arm64"} {
		img := goodImages[0].img
		img.Architecture = arch
		platforms, images = append(platforms, v1.Platform{OS: "linux", Architecture: arch}), append(images, img.Build(t))
	}
	ref := imagetest.Serve(t, nil).Push(imagetest.Index(platforms, images), "several")
	grace := filepath.Join(t.TempDir(), "grace.json")
	expect.NoError(t, os.WriteFile(grace, []byte(`{"schema": "gpudoctor.facts/v1", "host": {"arch": "arm64"}}`), 0o600))
	for _, tt := range []struct {
		flags []string
		want  string
	}{
		{nil, "linux/amd64"},
		{[]string{"--target", grace}, "linux/arm64"},
		{[]string{"--target", grace, "--platform", "linux/amd64"}, "linux/amd64"},
		{[]string{"--platform", "linux/arm64"}, "linux/arm64"},
	} {
		r := parseRequest(t, append([]string{"--from", registry.Scheme + ref}, tt.flags...))
		expect.Value(r.openTarget(t.Context()))(t)
		g := collect(t.Context(), r.source, r.options)
		expect.That(t, g.err == nil && g.facts.Image.Platform == tt.want, "%v: got %+v, %v", tt.flags, g.facts, g.err)
	}
}

// TestConnections checks that one package of the program can open connections, that which reads images from a registry;
// another asks the kernel for the addresses of interfaces, a third connects a child to itself, where it listens, and a fourth connects the
// nodes of a job, where the user asks for that.
func TestConnections(t *testing.T) {
	list := expect.Value(exec.Command("go", "list", "-deps", "-f", `{{range .Imports}}{{$.ImportPath}} {{.}}{{"\n"}}{{end}}`, ".").Output())(t)
	const own, only = "github.com/gpudoctor/gpudoctor/", "github.com/gpudoctor/gpudoctor/checks/image/registry"
	found := false
	for line := range strings.Lines(string(list)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		connects := to == "net" || to == "net/http" || strings.HasPrefix(to, "github.com/google/go-containerregistry/pkg/v1/remote")
		found = found || connects && from == only
		asks := to == "net" && (from == own+"checks/network" || from == own+"checks/internal/attempt" || from == own+"checks/probe/nodes/meeting")
		expect.That(t, !connects || !strings.HasPrefix(from, own) || from == only || asks, "%s imports %s", from, to)
	}
	expect.That(t, found, "%s imports no package that opens connections: this test looks for the wrong ones", only)
}
