package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestLiveFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		expect.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("small", "hello\n")
	write("empty", "")
	write("large", strings.Repeat("x", 3*pageSize+7))
	write("exact", strings.Repeat("y", pageSize))
	expect.NoError(t, os.Symlink("small", filepath.Join(dir, "link")))
	expect.NoError(t, os.Mkdir(filepath.Join(dir, "none"), 0o700))
	l := newLive()
	for _, tt := range []struct {
		name  string
		limit int64
		want  int
	}{
		{"small", 100, 6},
		{"small", 3, 3},
		{"small", 0, 0},
		{"empty", 100, 0},
		{"link", 100, 6},
		{"exact", 1 << 30, pageSize},
		{"large", 1 << 30, 3*pageSize + 7},
		{"large", pageSize + 1, pageSize + 1},
	} {
		b, err := l.ReadFile(filepath.Join(dir, tt.name), tt.limit)
		expect.That(t, err == nil && len(b) == tt.want, "read %s, at most %d: got %d bytes, %v; want %d", tt.name, tt.limit, len(b), err, tt.want)
	}
	names, err := l.ReadDir(dir)
	expect.NoError(t, err)
	expect.NoDiff(t, []string{"empty", "exact", "large", "link", "none", "small"}, names, "names")
	names, err = l.ReadDir(filepath.Join(dir, "none"))
	expect.That(t, err == nil && names != nil && len(names) == 0, "empty folder: got %#v, %v", names, err)
	target, err := l.ReadLink(filepath.Join(dir, "link"))
	expect.That(t, err == nil && target == "small", "link: got %q, %v", target, err)
	info, err := l.Stat(filepath.Join(dir, "link"))
	expect.That(t, err == nil && info.Size == 6 && info.Mode.IsRegular(), "stat: got %v, %v", info, err)
}

func TestLiveErrors(t *testing.T) {
	dir := t.TempDir()
	l := newLive()
	_, absent := l.ReadFile(filepath.Join(dir, "absent"), 1)
	_, folder := l.ReadFile(dir, 1)
	_, device := l.ReadFile(os.DevNull, 1)
	_, file := l.ReadDir(os.DevNull)
	_, link := l.ReadLink(dir)
	_, stat := l.Stat(filepath.Join(dir, "absent"))
	for _, tt := range []struct {
		what    string
		err, is error
		op, msg string
	}{
		{"absent file", absent, fs.ErrNotExist, "read", "no such file or directory"},
		{"folder", folder, errIsDir, "read", "is a directory"},
		{"device", device, errIrregular, "read", "not a regular file"},
		{"no folder", file, nil, "readdir", "not a directory"},
		{"no link", link, nil, "readlink", "invalid argument"},
		{"absent path", stat, fs.ErrNotExist, "stat", "no such file or directory"},
	} {
		var inPath *fs.PathError
		expect.Must(t, errors.As(tt.err, &inPath), "%s: %v is no fs.PathError", tt.what, tt.err)
		expect.That(t, inPath.Op == tt.op && (tt.is == nil || errors.Is(tt.err, tt.is)) && (runtime.GOOS != "linux" || inPath.Err.Error() == tt.msg), "%s: got %v", tt.what, tt.err)
	}
}

// TestPoolSlow checks that an operation that hangs costs its caller no more than the deadline, closes the folder that
// it hangs in and no other, and opens it again once it ends.
func TestPoolSlow(t *testing.T) {
	p := newPool(20 * time.Millisecond)
	release := make(chan struct{})
	hang := func() (int, error) { <-release; return 1, nil }
	fine := func() (int, error) { return 2, nil }
	expect.Fails(run(p, read.String(), "/sys/dead/file", hang))(t, ErrSlow, "it")
	for name, want := range map[string]error{
		"/sys/dead/file":     ErrSlow,
		"/sys/dead/other":    ErrSlow,
		"/sys/dead/below/it": ErrSlow,
		"/sys/dead":          ErrSlow,
		"/sys/deadly":        nil,
		"/sys/fine":          nil,
	} {
		_, err := run(p, read.String(), name, fine)
		expect.That(t, errors.Is(err, want) && (want != nil || err == nil), "%s: got %v, want %v", name, err, want)
	}
	var inPath *fs.PathError
	if _, err := run(p, read.String(), "/sys/dead/file", fine); !errors.As(err, &inPath) || inPath.Op != read.String() {
		t.Errorf("%v is no fs.PathError of the operation", err)
	}
	close(release)
	expect.That(t, eventually(func() bool { _, err := run(p, read.String(), "/sys/dead/file", fine); return err == nil }), "the folder stays closed after the operation in it has ended")
}

// TestPoolBound checks that no more than a bounded number of operations is left behind.
func TestPoolBound(t *testing.T) {
	p := newPool(time.Millisecond)
	release := make(chan struct{})
	defer close(release)
	var begun atomic.Int32
	for i := range 3 * maxStuck {
		_, err := run(p, read.String(), fmt.Sprintf("/mnt/%d/file", i), func() (int, error) {
			begun.Add(1)
			<-release
			return 0, nil
		})
		expect.Must(t, errors.Is(err, ErrSlow), "operation %d: got %v, want ErrSlow", i, err)
	}
	expect.Equal(t, maxStuck, begun.Load(), "it")
}

func eventually(done func() bool) bool {
	for range 500 {
		if done() {
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

func TestAskOnce(t *testing.T) {
	var calls atomic.Int32
	begun := make(chan struct{}, 10)
	release := make(chan struct{})
	answer := func(ctx context.Context) (any, error) {
		calls.Add(1)
		begun <- struct{}{}
		<-release
		return []int{1}, ctx.Err()
	}
	l := newLive()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			raw, err := l.Ask(t.Context(), "test once:a:b", answer)
			expect.That(t, err == nil && string(raw) == "[1]", "got %s, %v", raw, err)
		})
	}
	<-begun
	close(release)
	wg.Wait()
	expect.Value(l.Ask(t.Context(), "test once:a:b", answer))(t)
	expect.Equal(t, 1, calls.Load(), "how often it is asked")
	expect.Value(l.Ask(t.Context(), "test once:c", answer))(t)
	expect.Equal(t, 2, calls.Load(), "how often it is asked, with another argument")
}

// TestAskCanceled checks that an answer is called off when its asker has gone, who waits for its end, and that the
// question can be asked again.
func TestAskCanceled(t *testing.T) {
	var calls, ended atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	answer := func(ctx context.Context) (any, error) {
		if calls.Add(1) == 2 {
			return "second", nil
		}
		cancel()
		<-ctx.Done()
		ended.Add(1)
		return nil, ctx.Err()
	}
	l := newLive()
	expect.Fails(l.Ask(ctx, "test canceled", answer))(t, context.Canceled, "an asker who has gone")
	expect.Equal(t, 1, ended.Load(), "how often the answer has ended")
	raw, err := l.Ask(t.Context(), "test canceled", answer)
	expect.That(t, err == nil && string(raw) == `"second"`, "asked again: got %s, %v", raw, err)
}

func TestAskFailures(t *testing.T) {
	by := map[string]Answerer{
		"test panic":   func(context.Context) (any, error) { panic("boom") },
		"test channel": func(context.Context) (any, error) { return make(chan int), nil },
	}
	for question, want := range map[string]string{
		"test panic":         "test panic: the query panicked: boom; please report this bug",
		"test channel":       `answer to "test channel": json: unsupported type: chan int`,
		"test unknown:thing": "test unknown:: unsupported operation",
	} {
		raw, err := newLive().Ask(t.Context(), question, by[question])
		expect.That(t, err != nil && err.Error() == want, "%s: got %s, %v; want %s", question, raw, err, want)
	}
}

func TestLiveQuestions(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("these questions are answered on Linux alone")
	}
	t.Setenv("NCCL_DEBUG", "INFO")
	t.Setenv("NVIDIA_API_KEY", "nvapi-secret")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	l := newLive()
	ask := func(question string, answer any) {
		t.Helper()
		raw, err := l.Ask(t.Context(), question, nil)
		if err == nil {
			err = json.Unmarshal(raw, answer)
		}
		expect.Must(t, err == nil, "%s: %v", question, err)
	}
	var environ []string
	ask(AskEnviron, &environ)
	for _, want := range []string{"NCCL_DEBUG=INFO", "NVIDIA_API_KEY=set", "KUBERNETES_SERVICE_HOST=set"} {
		expect.That(t, slices.Contains(environ, want), "environment: %q lacks %s", environ, want)
	}
	var u Uname
	ask(AskUname, &u)
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	expect.That(t, err == nil && u.Release == strings.TrimSpace(string(release)), "uname: got release %q, want %q", u.Release, release)
	var ids IDs
	ask(AskIDs, &ids)
	expect.That(t, ids.UID == os.Geteuid(), "ids: got %+v", ids)
	ask(AskClock, &facts.Clock{})
	var limits map[string]Limit
	ask(AskLimits, &limits)
	locked, ok := limits["memlock"]
	expect.That(t, ok && (locked.Hard == -1 || locked.Soft <= locked.Hard), "limits: got %v", limits)
	var st Statfs
	ask(AskStatfs+"/proc", &st)
	expect.That(t, st.FreeBytes <= st.SizeBytes, "statfs of /proc: got %+v", st)
	var access string
	ask(AskAccess+"/dev/null", &access)
	expect.Equal(t, "rw", access, "access to /dev/null")
	for _, question := range []string{AskStatfs + "/no/such", AskAccess + "/no/such"} {
		expect.Fails(l.Ask(t.Context(), question, nil))(t, fs.ErrNotExist, "%s", question)
	}
}

func TestKernelLogRecords(t *testing.T) {
	for _, tt := range []struct{ record, want string }{
		{"3,1042,5140900,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n", "5.140900 NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n"},
		{"6,1,0,-,caller=T1;pcieport 0000:00:01.0: AER: enabled\n", "0.000000 pcieport 0000:00:01.0: AER: enabled\n"},
		{"6,2,1000001,c;usb 1-1: new device; NVRM is not in it\n", "1.000001 usb 1-1: new device; NVRM is not in it\n"},
		{"6,2,1,-;usb 1-1: new device\n", ""},
		{"6,2,1,-;mlx5_core 0000:5e:00.0: Port module event: cable plugged\n", ""},
		{"6,2,1,-;mlx5_core 0000:5e:00.0: health compromised\n", "0.000001 mlx5_core 0000:5e:00.0: health compromised\n"},
		{"6,2,1,-;NVRM: \xff\n", "0.000001 NVRM: ?\n"},
		{"6,2,x,-;NVRM: no time\n", ""},
		{"6,2,99999999999999999999,-;NVRM: no time\n", ""},
		{"6;NVRM: no time\n", ""},
		{"NVRM: no head\n", ""},
		{"", ""},
	} {
		var log kernelLog
		log.add([]byte(tt.record))
		expect.Equal(t, tt.want, log.text.String(), "%q", tt.record)
	}
}

func FuzzKernelLog(f *testing.F) {
	f.Add([]byte("3,1042,5140900,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n SUBSYSTEM=pci\n"))
	f.Add([]byte("6,1,0,-,caller=T1;pcieport\xff 0000:00:01.0: AER: enabled"))
	f.Fuzz(func(t *testing.T, record []byte) {
		var log kernelLog
		log.add(record)
		text := log.text.String()
		expect.That(t, strings.Count(text, "\n") <= 1 && (text == "" || strings.HasSuffix(text, "\n")), "%q gives %q, which is not one line", record, text)
	})
}

func TestWanted(t *testing.T) {
	for name, want := range map[string]bool{
		"NCCL_DEBUG": true, "RCCL_X": true, "OFI_NCCL_PROTOCOL": true, "HOME": true, "container": true, "WORLD_SIZE": true,
		"LD_PRELOAD": true, "CONDA_PREFIX": true, "APPTAINER_CONTAINER": true, "NVIDIA_VISIBLE_DEVICES": true,
		"VLLM_SKIP_P2P_CHECK": true, "PYTORCH_CUDA_ALLOC_CONF": true, "GLOO_SOCKET_IFNAME": true,
		"PATH": false, "AWS_SECRET_ACCESS_KEY": false, "nccl_debug": false, "USER": false, "HOMEX": false, "": false,
	} {
		expect.Equal(t, want, Wanted(name), "%s", name)
	}
	got := WantedEnviron([]string{"PATH=/bin", "NCCL_B=1=2", "NCCL_A=", "broken", "NVIDIA_API_KEY=x", "NCCL_IB_PKEY=0x8001"})
	expect.NoDiff(t, []string{"NCCL_A=", "NCCL_B=1=2", "NCCL_IB_PKEY=0x8001", "NVIDIA_API_KEY=set"}, got, "it")
}
