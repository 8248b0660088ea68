package env

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestEnvSources(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		files   map[string]string
		want    []facts.Variable
		unknown []facts.Unknown
	}{
		{
			name: "nothing set",
			want: []facts.Variable{},
		},
		{
			name:    "only names that steer communication",
			environ: []string{"HOME=/home/ada", "PATH=/bin", "NCCL_DEBUG=INFO", "LD_PRELOAD=", "FISH=1"},
			want: []facts.Variable{
				{Name: "LD_PRELOAD", Source: "environment", Effective: true},
				{Name: "NCCL_DEBUG", Value: "INFO", Source: "environment", Effective: true},
			},
		},
		{
			name:    "the environment wins, then the home folder, then /etc",
			environ: []string{"HOME=/home/ada", "NCCL_P2P_DISABLE=0"},
			files: map[string]string{
				"/home/ada/.nccl.conf": "# mine\nNCCL_P2P_DISABLE=1\nNCCL_NVLS_ENABLE=0\n",
				"/etc/nccl.conf":       "NCCL_NVLS_ENABLE=1\r\nNCCL_IB_HCA==mlx5_0\nTMPDIR=/tmp\n",
			},
			want: []facts.Variable{
				{Name: "NCCL_IB_HCA", Value: "=mlx5_0", Source: "/etc/nccl.conf", Line: 2, Effective: true},
				{Name: "NCCL_NVLS_ENABLE", Value: "1", Source: "/etc/nccl.conf", Line: 1},
				{Name: "NCCL_NVLS_ENABLE", Value: "0", Source: "/home/ada/.nccl.conf", Line: 3, Effective: true},
				{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "/home/ada/.nccl.conf", Line: 2},
				{Name: "NCCL_P2P_DISABLE", Value: "0", Source: "environment", Effective: true},
			},
		},
		{
			name:    "NCCL_CONF_FILE stands in for the file at home",
			environ: []string{"HOME=/home/ada", "NCCL_CONF_FILE=/srv/job.conf"},
			files: map[string]string{
				"/home/ada/.nccl.conf": "NCCL_DEBUG=INFO\n",
				"/srv/job.conf":        "NCCL_DEBUG=WARN\nNCCL_DEBUG=TRACE\n",
			},
			want: []facts.Variable{
				{Name: "NCCL_CONF_FILE", Value: "/srv/job.conf", Source: "environment", Effective: true},
				{Name: "NCCL_DEBUG", Value: "WARN", Source: "/srv/job.conf", Line: 1, Effective: true},
				{Name: "NCCL_DEBUG", Value: "TRACE", Source: "/srv/job.conf", Line: 2},
			},
		},
		{
			name:    "NCCL_CONF_FILE that leads nowhere",
			environ: []string{"NCCL_CONF_FILE=/srv/gone.conf"},
			want: []facts.Variable{
				{Name: "NCCL_CONF_FILE", Value: "/srv/gone.conf", Source: "environment", Effective: true},
			},
			unknown: []facts.Unknown{{
				Section: "env", Fact: "variables", Reason: "NCCL_CONF_FILE names /srv/gone.conf, which does not exist",
				Hint: "set NCCL_CONF_FILE to the absolute path of a readable file",
			}},
		},
		{
			name:    "NCCL and RCCL each take their own file",
			environ: []string{"HOME=/root"},
			files: map[string]string{
				"/etc/nccl.conf": "NCCL_IB_TC=104\n",
				"/etc/rccl.conf": "NCCL_IB_TC=106\n",
			},
			want: []facts.Variable{
				{Name: "NCCL_IB_TC", Value: "104", Source: "/etc/nccl.conf", Line: 1, Effective: true},
				{Name: "NCCL_IB_TC", Value: "106", Source: "/etc/rccl.conf", Line: 1, Effective: true},
			},
		},
		{
			name: "the password file tells the home folder",
			files: map[string]string{
				"/etc/passwd":          "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n",
				"/home/ada/.nccl.conf": "NCCL_DEBUG=INFO",
			},
			want: []facts.Variable{{Name: "NCCL_DEBUG", Value: "INFO", Source: "/home/ada/.nccl.conf", Line: 1, Effective: true}},
		},
		{
			name: "lines that have no effect",
			files: map[string]string{
				"/etc/nccl.conf": "export NCCL_DEBUG=INFO\nNCCL_NET\n\n  # a comment\nNCCL_ALGO = Ring\nNCCL_PROTO=Simple\n",
			},
			want: []facts.Variable{{Name: "NCCL_PROTO", Value: "Simple", Source: "/etc/nccl.conf", Line: 6, Effective: true}},
			unknown: []facts.Unknown{
				{Section: "env", Fact: "variables", Reason: `/etc/nccl.conf:1: all of "export NCCL_DEBUG" is taken as the variable's name; the line has no effect`, Hint: "correct or remove the line"},
				{Section: "env", Fact: "variables", Reason: `/etc/nccl.conf:2: not NAME=value; the line has no effect`, Hint: "correct or remove the line"},
				{Section: "env", Fact: "variables", Reason: `/etc/nccl.conf:5: all of "NCCL_ALGO " is taken as the variable's name; the line has no effect`, Hint: "correct or remove the line"},
			},
		},
		{
			name:    "control characters are escaped",
			environ: []string{"NCCL_SOCKET_IFNAME=eth0\x1b[31m\n\xff"},
			want:    []facts.Variable{{Name: "NCCL_SOCKET_IFNAME", Value: `eth0\x1b[31m\n�`, Source: "environment", Effective: true}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m machine.Memory
			m.Answer(machine.AskEnviron, tt.environ)
			m.Answer(machine.AskIDs, machine.IDs{UID: 1000})
			for name, data := range tt.files {
				m.AddFile(name, []byte(data))
			}
			got := checktest.One(t, Check, &m)
			expect.NoDiff(t, &facts.EnvFacts{Variables: tt.want}, got.Env, "env")
			expect.NoDiff(t, tt.unknown, got.Unknown, "unknown")
		})
	}
}

func TestEnvUnreadable(t *testing.T) {
	var m machine.Memory
	m.Answer(machine.AskEnviron, []string{"HOME=/root"})
	m.AddError("/etc/nccl.conf", fs.ErrPermission)
	got := checktest.One(t, Check, &m)
	want := []facts.Unknown{{Section: "env", Fact: "variables", Reason: "read /etc/nccl.conf: permission denied", Hint: "run as root"}}
	expect.NoDiff(t, want, got.Unknown, "unknown")

	var dark machine.Memory
	dark.AnswerError(machine.AskEnviron, errors.New("no answer"))
	if got := checktest.One(t, Check, &dark); got.Env != nil || len(got.Unknown) != 1 {
		t.Errorf("without an environment: got section %v and unknown %v, want no section and one reason", got.Env, got.Unknown)
	}
}

func FuzzConf(f *testing.F) {
	f.Add([]byte("NCCL_DEBUG=INFO\n# comment\n"))
	f.Add([]byte("export NCCL_DEBUG=INFO\nNCCL_NET\n\r\n=\n==\nA=\xff\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		settings, broken := parseConf(b)
		for _, s := range settings {
			if !IsVariableName(s.Name) || len(s.Value) > confValue || !utf8.ValidString(s.Value) || s.Line < 1 {
				t.Errorf("bad setting %+v", s)
			}
			if escape.Printable(s.Value, len(s.Value)) != s.Value && !strings.ContainsRune(s.Value, utf8.RuneError) {
				t.Errorf("unescaped value %q", s.Value)
			}
		}
		for _, l := range broken {
			if l.line < 1 || l.reason == "" {
				t.Errorf("bad line %+v", l)
			}
		}
	})
}
