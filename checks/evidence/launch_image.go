package evidence

import (
	"bytes"
	"encoding/json"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// launchDockerfileKind takes Dockerfiles: the base image and the variables that
// they set.
var launchDockerfileKind = &Kind{
	Name: "dockerfile", Title: "A Dockerfile", Gives: []string{"launches", "env"}, Anchors: []string{"FROM "},
	Begins: func(in *Lines) bool {
		l, ok := in.Peek()
		if !ok || !launchFrom.MatchString(l.Text) {
			return false
		}
		for _, l := range in.Ahead(40)[1:] {
			if launchInstruction.MatchString(l.Text) {
				return true
			}
		}
		return false
	},
	Read: func(s *Sink, in *Lines) {
		first, _ := in.Peek()
		found := &facts.Launch{Kind: "dockerfile"}
		goesOn := false
		lines := in.While(func(l Line) bool {
			text := strings.TrimSpace(l.Text)
			belongs := goesOn || text == "" || strings.HasPrefix(text, "#") || launchFrom.MatchString(text) || launchInstruction.MatchString(text)
			goesOn = launchGoesOn(text)
			return belongs
		})
		for _, l := range lines {
			if m := launchFrom.FindStringSubmatch(l.Text); m != nil {
				found.Image = m[1] // The last stage's counts.
			}
			for _, v := range environmentSettings(l.Text) {
				launchSet(found, v[0], v[1])
				launchStands(found, launchVariable(v[0]), l.Number)
			}
		}
		launchKeep(s, found, first, nil)
	},
}

var (
	launchFrom        = lazy.New(`^\s*FROM\s+(?:--platform=\S+\s+)?([\w./:@$}{-]+)(?:\s+(?:AS|as)\s+\S+)?\s*$`)
	launchInstruction = lazy.New(`^\s*(?:RUN|ENV|COPY|ADD|WORKDIR|ENTRYPOINT|CMD|ARG|LABEL|EXPOSE|USER|SHELL|VOLUME|HEALTHCHECK|STOPSIGNAL|ONBUILD)\s`)
)

// launchInspectKind takes the JSON of docker inspect.
var launchInspectKind = &Kind{
	Name: "docker-inspect", Title: "A container, from docker inspect", Command: "docker inspect NAME", Gives: []string{"launches", "env"},
	Anchors: []string{"["}, Commands: []string{"docker inspect", "docker container inspect", "podman inspect"},
	Prefilter: func(line []byte) Relevance {
		if string(bytes.TrimSpace(line)) == "[" {
			return Relevant
		}
		return Irrelevant
	},
	Begins: func(in *Lines) bool {
		l, ok := in.Peek()
		if text := strings.TrimSpace(l.Text); !ok || text != "[" {
			return false
		}
		for _, l := range in.Ahead(200) {
			if strings.Contains(l.Text, `"HostConfig": {`) {
				return true
			}
		}
		return false
	},
	Read: func(s *Sink, in *Lines) {
		first, _ := in.Peek()
		size, ended := 0, false
		lines := in.While(func(l Line) bool {
			if ended {
				return false
			}
			size += len(l.Text) + 1
			ended = l.Text == "]"
			return size <= launchMaxDocument
		})
		var b strings.Builder
		for _, l := range lines {
			b.WriteString(l.Text)
			b.WriteByte('\n')
		}
		var containers []launchInspected
		if json.Unmarshal([]byte(b.String()), &containers) != nil {
			return
		}
		nodes := jsonNodes(b.String())
		for i := range containers[:min(len(containers), launchMaxList)] {
			l := containers[i].launch()
			containers[i].places(l, yamlItem(nodes, i), first.Number)
			launchKeep(s, l, first, nil)
		}
	},
}

// launchInspected is what is read of a container (Docker Engine API,
// ContainerInspect).
type launchInspected struct {
	Name   string
	Args   []string
	Path   string
	Config struct {
		Image string
		Env   []string
	}
	HostConfig struct {
		Binds                         []string
		NetworkMode, IpcMode, PidMode string
		CapAdd, CapDrop, SecurityOpt  []string
		Privileged                    bool
		Runtime                       string
		ShmSize                       *int64
		Ulimits                       []struct {
			Name string
			Soft int64
		}
		Devices        []struct{ PathOnHost string }
		DeviceRequests []struct {
			Driver       string
			Count        int
			DeviceIDs    []string
			Capabilities [][]string
		}
	}
	Mounts []struct{ Source, Destination string }
}

// places notes the lines of a container's parts in the document, which begins
// at line first.
func (c *launchInspected) places(l *facts.Launch, n *yaml.Node, first int) {
	l.Lines = map[string]int{}
	note := func(part string, keys ...string) {
		if below := yamlBelow(n, keys...); below != nil {
			launchStands(l, part, first+below.Line-1)
		}
	}
	note("shm_bytes", "HostConfig", "ShmSize")
	note("ipc", "HostConfig", "IpcMode")
	note("privileged", "HostConfig", "Privileged")
	note("runtime", "HostConfig", "Runtime")
	note("devices", "HostConfig", "Devices")
	environment := yamlBelow(n, "Config", "Env")
	for i, setting := range c.Config.Env {
		if entry := yamlItem(environment, i); entry != nil {
			name, _, _ := strings.Cut(setting, "=")
			launchStands(l, launchVariable(name), first+entry.Line-1)
		}
	}
}

func (c *launchInspected) launch() *facts.Launch {
	h := &c.HostConfig
	l := &facts.Launch{
		Kind: "docker-inspect", Name: strings.TrimPrefix(c.Name, "/"), Image: c.Config.Image, Runtime: h.Runtime, IPC: h.IpcMode, PID: h.PidMode,
		Network: h.NetworkMode, Privileged: h.Privileged, SHMBytes: h.ShmSize,
	}
	if c.Path != "" {
		l.Command = append([]string{c.Path}, c.Args...)
	}
	for _, name := range h.CapAdd {
		launchAppend(&l.CapAdd, launchCapability(name))
	}
	for _, name := range h.CapDrop {
		launchAppend(&l.CapDrop, launchCapability(name))
	}
	launchAppend(&l.SecurityOptions, h.SecurityOpt...)
	for _, d := range h.Devices {
		launchDevice(l, d.PathOnHost)
	}
	for _, u := range h.Ulimits {
		if u.Name == "memlock" {
			soft := max(u.Soft, -1)
			l.MemlockBytes = &soft
		}
	}
	for _, d := range h.DeviceRequests {
		l.GPUVendor = "nvidia"
		n := len(d.DeviceIDs)
		if n == 0 {
			n = d.Count
		}
		if n != 0 {
			l.GPUs = &n
		}
	}
	for _, m := range c.Mounts {
		launchMount(l, m.Source, m.Destination)
	}
	for _, setting := range c.Config.Env {
		if name, value, ok := launchAssignment(setting); ok {
			launchSet(l, name, value)
		}
	}
	return l
}
