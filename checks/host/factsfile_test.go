package host

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// recordedFacts has a field of each kind, and things that are to be redacted.
func recordedFacts() *facts.Facts {
	return &facts.Facts{
		Schema: facts.FactsSchema,
		Host: &facts.HostFacts{
			Hostname: "trainer-7.lab.example.org", Kernel: "6.8.0", BIOS: "Vendor 1.2.3.4 01/01/2026",
			CommandLine: []string{"root=UUID=8f6c1d1e-2222-3333-4444-555566667777", "ip=10.1.2.3"}, Root: new(false),
		},
		PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{{
			Address: "0000:3b:00.0", Class: "0x030200", Link: &facts.PCIeLink{SpeedGTs: 32, Source: "config"},
			ACS: &facts.ACS{Control: []string{"ReqRedir"}},
		}}},
		GPUs: &facts.GPUFacts{NVML: "ok", Driver: facts.GPUDriver{Version: "580.159.04", Parameters: map[string]string{"A": "<1>"}}, Devices: []facts.GPU{{
			Address: "0000:3b:00.0", UUID: "GPU-8f6c1d1e-2222-3333-4444-555566667777",
			Fabric: &facts.Fabric{State: "completed"},
		}}},
		Env: &facts.EnvFacts{Variables: []facts.Variable{
			{Name: "NVIDIA_API_KEY", Value: "nvapi", Source: "environment"},
			{Name: "NCCL_TOPO_FILE", Value: "/home/alice/topo.xml", Source: "/home/alice/.nccl.conf", Line: 3},
		}},
		KernelLog: &facts.KernelLogFacts{Source: "/dev/kmsg", Events: []facts.KernelEvent{{
			Kind: "xid", Code: new(79), Address: "0000:3b:00.0", Message: "trainer-7: NVRM: Xid (PCI:0000:3b:00): 79", Seconds: 1.5, Count: 1,
		}}},
		Transfers: &probe.Report{Mode: probe.Quick, Outcome: probe.OK, Transfers: []probe.Transfer{{
			Test: probe.TestCopy, Source: "0000:3b:00.0", Destination: "0000:5e:00.0", Outcome: probe.OK, GBps: new(395.5),
		}}},
		Unknown: []facts.Unknown{{Section: "pci", Fact: "devices.acs", Reason: "config space beyond 64 bytes needs root", Hint: "run as root"}},
	}
}

func TestFactsRoundTrip(t *testing.T) {
	var b bytes.Buffer
	expect.NoError(t, WriteFacts(&b, recordedFacts()))
	expect.That(t, bytes.HasPrefix(b.Bytes(), []byte("{\n  \"schema\": \"gpudoctor.facts/v1\",\n")) && bytes.Contains(b.Bytes(), []byte(`"<1>"`)), "not as it should look:\n%s", b.Bytes())
	first := b.String()
	got := expect.Value(parseFacts("facts.json", b.Bytes()))(t)
	expect.NoDiff(t, recordedFacts(), got, "it")
	var again bytes.Buffer
	err := WriteFacts(&again, got)
	expect.That(t, err == nil && again.String() == first, "%v; written again (-first +second):\n%s", err, cmp.Diff(first, again.String()))
}

func TestReadFactsErrors(t *testing.T) {
	const head = `{"schema": "gpudoctor.facts/v1",` + "\n"
	for _, tt := range []struct{ text, want string }{
		{"", "f.json:1: unexpected end of JSON input"},
		{"{\n  \"schema\": x", "f.json:2: invalid character 'x' looking for beginning of value"},
		{"{}", `f.json: not a facts file: it has no schema; want "gpudoctor.facts/v1"`},
		{"[]", `f.json: not a facts file: it has no schema; want "gpudoctor.facts/v1"`},
		{"{\n \"schema\": \"gpudoctor.report/v1\"}", `f.json: not a facts file: its schema is "gpudoctor.report/v1"; want "gpudoctor.facts/v1"`},
		{`{"schema": "gpudoctor.facts/v2", "news": 1}`, `f.json: made by a newer gpudoctor: its schema is "gpudoctor.facts/v2"; this version reads "gpudoctor.facts/v1"`},
		{head + ` "extra": 1}`, `f.json: unknown field "extra"`},
		{head + ` "pci": {"devices": [{"address": "a"},` + "\n" + `  {"colour": "b"}]}}`, `f.json: unknown field "pci.devices[1].colour"`},
		{head + ` "HOST": {}}`, `f.json: unknown field "HOST"`},
		{head + ` "host": {}, "host": {}}`, `f.json: duplicate field "host"`},
		{head + ` "host": {"root": "yes"}}`, `f.json:2: host.root: got string, want bool`},
		{head + ` "host": {}} {}`, "f.json:2: invalid character '{' after top-level value"},
		{head + ` "gpus": {"a\"b": 1}}`, `f.json: unknown field "gpus.a\"b"`},
		{head + ` "transfers": {"transfers": [{"gbps": []}]}}`, `f.json:2: transfers.transfers.gbps: got array, want float64`},
	} {
		_, err := parseFacts("f.json", []byte(tt.text))
		expect.That(t, err != nil && err.Error() == tt.want, "%s\n got %v\nwant %s", tt.text, err, tt.want)
	}
	expect.Fails(parseFacts("x", []byte(`{"schema": "gpudoctor.facts/v9"}`)))(t, ErrNewer, "a newer schema")
	deep := strings.Repeat("[", 1<<20)
	expect.Fails(parseFacts("x", []byte(head+`"pci": `+deep)))(t, nil, "a document that is nested without end")
	_, _, err := OpenRecording("x", endlessFile{})
	expect.That(t, err != nil && err.Error() == "read x: larger than 64 MiB", "an endless file: got %v", err)
}

// endlessFile is a file without end.
type endlessFile struct{}

func (endlessFile) Read(b []byte) (int, error) { return len(b), nil }

func TestFactsRedact(t *testing.T) {
	f := recordedFacts()
	got := RedactFacts(f)
	want := recordedFacts()
	want.Host.Hostname = "host-1.example.com"
	want.Host.CommandLine = []string{"root=UUID=00000000-0000-0000-0000-000000000001", "ip=240.0.0.1"}
	want.GPUs.Devices[0].UUID = "GPU-00000000-0000-0000-0000-000000000001"
	want.Env.Variables[0].Value = "redacted"
	want.Env.Variables[1].Value, want.Env.Variables[1].Source = "/home/user1/topo.xml", "/home/user1/.nccl.conf"
	want.KernelLog.Events[0].Message = "host-1: NVRM: Xid (PCI:0000:3b:00): 79"
	expect.NoDiff(t, want, got, "it")
	expect.NoDiff(t, recordedFacts(), f, "the facts themselves were changed")
	expect.NoDiff(t, got, RedactFacts(got), "redacting twice changes something")
}

func TestOpen(t *testing.T) {
	for _, tt := range []struct {
		text        string
		host, facts bool
		err         error
	}{
		{"gpudoctor.snapshot/v1\n-- a --\nb\n", true, false, nil},
		{"\ufeff\n gpudoctor.snapshot/v1\r\n-- a --\r\n", true, false, nil},
		{"\ufeff \n{\"schema\": \"gpudoctor.facts/v1\"}\n", false, true, nil},
		{"gpudoctor.snapshot/v2\n", false, false, ErrNewer},
		{`{"schema": "gpudoctor.facts/v2"}`, false, false, ErrNewer},
		{"NCCL INFO Bootstrap", false, false, ErrUnrecognized},
		{"", false, false, ErrUnrecognized},
		{"-- a --\nb\n", false, false, ErrUnrecognized},
	} {
		h, f, err := OpenRecording("any.name", strings.NewReader(tt.text))
		expect.That(t, (h != nil) == tt.host && (f != nil) == tt.facts && errors.Is(err, tt.err) && (tt.err != nil || err == nil), "%q: got host %t, facts %t, %v", tt.text, h != nil, f != nil, err)
		expect.That(t, h == nil || h.Recorded(), "%q: a snapshot does not say that it is a recording", tt.text)
	}
}

func FuzzReadFacts(f *testing.F) {
	var b bytes.Buffer
	expect.NoError(f, WriteFacts(&b, recordedFacts()))
	f.Add(b.Bytes())
	f.Add([]byte(`{"schema": "gpudoctor.facts/v1", "env": {"variables": [{"name": "A\\\"", "x": 1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		f, err := parseFacts("fuzz", data)
		if err != nil {
			return
		}
		var b bytes.Buffer
		expect.NoError(t, WriteFacts(&b, RedactFacts(f)))
		_, err = parseFacts("again", b.Bytes())
		expect.That(t, err == nil, "what was written cannot be read: %v", err)
	})
}
