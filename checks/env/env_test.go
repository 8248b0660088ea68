package env

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestEnvSources(t *testing.T) {
	const home, system = "/home/ada/.nccl.conf", "/etc/nccl.conf"
	type (
		environ = []string
		files   = map[string]string
	)
	for _, tt := range []struct {
		name    string
		environ environ
		files   files
		want    string // Of each variable NAME=VALUE, its source and line, and a star where it is in force.
		unknown []facts.Unknown
	}{
		{"nothing set", nil, nil, "", nil},
		{"only names that steer communication", environ{"HOME=/home/ada", "PATH=/bin", "NCCL_DEBUG=INFO", "LD_PRELOAD=", "FISH=1"}, nil, "LD_PRELOAD= environment*, NCCL_DEBUG=INFO environment*", nil},
		{
			"the environment wins, then the home folder, then /etc",
			environ{"HOME=/home/ada", "NCCL_P2P_DISABLE=0"},
			files{home: "# mine\nNCCL_P2P_DISABLE=1\nNCCL_NVLS_ENABLE=0\n", system: "NCCL_NVLS_ENABLE=1\r\nNCCL_IB_HCA==mlx5_0\nTMPDIR=/tmp\n"},
			"NCCL_IB_HCA==mlx5_0 /etc/nccl.conf:2*, NCCL_NVLS_ENABLE=1 /etc/nccl.conf:1, NCCL_NVLS_ENABLE=0 /home/ada/.nccl.conf:3*, " +
				"NCCL_P2P_DISABLE=1 /home/ada/.nccl.conf:2, NCCL_P2P_DISABLE=0 environment*", nil,
		},
		{
			"NCCL_CONF_FILE stands in for the file at home",
			environ{"HOME=/home/ada", "NCCL_CONF_FILE=/srv/job.conf"},
			files{home: "NCCL_DEBUG=INFO\n", "/srv/job.conf": "NCCL_DEBUG=WARN\nNCCL_DEBUG=TRACE\n"},
			"NCCL_CONF_FILE=/srv/job.conf environment*, NCCL_DEBUG=WARN /srv/job.conf:1*, NCCL_DEBUG=TRACE /srv/job.conf:2", nil,
		},
		{"NCCL_CONF_FILE that leads nowhere", environ{"NCCL_CONF_FILE=/srv/gone.conf"}, nil, "NCCL_CONF_FILE=/srv/gone.conf environment*", []facts.Unknown{{
			Section: "env", Fact: "variables", Reason: "NCCL_CONF_FILE names /srv/gone.conf, which does not exist",
			Hint: "set NCCL_CONF_FILE to the absolute path of a readable file",
		}}},
		{
			"NCCL and RCCL each take their own file",
			environ{"HOME=/root"},
			files{system: "NCCL_IB_TC=104\n", "/etc/rccl.conf": "NCCL_IB_TC=106\n"},
			"NCCL_IB_TC=104 /etc/nccl.conf:1*, NCCL_IB_TC=106 /etc/rccl.conf:1*", nil,
		},
		{
			"the password file tells the home folder", nil,
			files{"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n", home: "NCCL_DEBUG=INFO"},
			"NCCL_DEBUG=INFO /home/ada/.nccl.conf:1*", nil,
		},
		{
			"lines that have no effect", nil,
			files{system: "export NCCL_DEBUG=INFO\nNCCL_NET\n\n  # a comment\nNCCL_ALGO = Ring\nNCCL_PROTO=Simple\n"},
			"NCCL_PROTO=Simple /etc/nccl.conf:6*",
			[]facts.Unknown{
				{Section: "env", Fact: "variables", Reason: `/etc/nccl.conf:1: all of "export NCCL_DEBUG" is taken as the variable's name; the line has no effect`, Hint: "correct or remove the line"},
				{Section: "env", Fact: "variables", Reason: `/etc/nccl.conf:2: not NAME=value; the line has no effect`, Hint: "correct or remove the line"},
				{Section: "env", Fact: "variables", Reason: `/etc/nccl.conf:5: all of "NCCL_ALGO " is taken as the variable's name; the line has no effect`, Hint: "correct or remove the line"},
			},
		},
		{"control characters are escaped", environ{"NCCL_SOCKET_IFNAME=eth0\x1b[31m\n\xff"}, nil, `NCCL_SOCKET_IFNAME=eth0\x1b[31m\n�` + " environment*", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m host.Memory
			m.Answer(host.AskEnviron, tt.environ)
			m.Answer(host.AskIDs, host.IDs{UID: 1000})
			for name, data := range tt.files {
				m.AddFile(name, []byte(data))
			}
			found := checktest.One(t, Check, &m)
			var got []string
			for _, v := range found.Env.Variables {
				s := v.Name + "=" + v.Value + " " + v.Source
				if v.Line > 0 {
					s += fmt.Sprintf(":%d", v.Line)
				}
				got = append(got, s+map[bool]string{true: "*"}[v.Effective])
			}
			expect.That(t, found.Env.Variables != nil, "the variables are not known")
			expect.Equal(t, tt.want, strings.Join(got, ", "), "variables")
			expect.NoDiff(t, tt.unknown, found.Unknown, "unknown")
		})
	}
}

func TestEnvUnreadable(t *testing.T) {
	var m host.Memory
	m.Answer(host.AskEnviron, []string{"HOME=/root"})
	m.AddError("/etc/nccl.conf", fs.ErrPermission)
	got := checktest.One(t, Check, &m)
	want := []facts.Unknown{{Section: "env", Fact: "variables", Reason: "read /etc/nccl.conf: permission denied", Hint: "run as root"}}
	expect.NoDiff(t, want, got.Unknown, "unknown")

	var dark host.Memory
	dark.AnswerError(host.AskEnviron, errors.New("no answer"))
	got = checktest.One(t, Check, &dark)
	expect.That(t, got.Env == nil && len(got.Unknown) == 1, "without an environment: got section %v and unknown %v, want no section and one reason", got.Env, got.Unknown)
}

func FuzzConf(f *testing.F) {
	f.Add([]byte("NCCL_DEBUG=INFO\n# comment\n"))
	f.Add([]byte("export NCCL_DEBUG=INFO\nNCCL_NET\n\r\n=\n==\nA=\xff\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		settings, _ := parseConf(b)
		for _, s := range settings {
			expect.That(t, IsVariableName(s.Name) && len(s.Value) <= confValue && utf8.ValidString(s.Value) && s.Line >= 1, "bad setting %+v", s)
			expect.That(t, escape.Printable(s.Value, len(s.Value)) == s.Value || strings.ContainsRune(s.Value, utf8.RuneError), "unescaped value %q", s.Value)
		}
	})
}
