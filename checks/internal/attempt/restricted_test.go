//go:build linux

package attempt

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/restricted"
)

// asRestricted is the environment variable that makes this test binary a parent that makes attempts and
// prints the results, under a restriction if it has one.
const asRestricted = "GPUDOCTOR_TEST_RESTRICTED"

// parent is what such a parent does.
type parent struct {
	To    *restricted.To
	Sizes Sizes
	Names []string
}

// runRestricted runs as such a parent.
func runRestricted() {
	text := os.Getenv(asRestricted)
	if text == "" {
		return
	}
	var p parent
	err := json.Unmarshal([]byte(text), &p)
	if err == nil && p.To != nil {
		env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, asRestricted) })
		raw, _ := json.Marshal(parent{Sizes: p.Sizes, Names: p.Names}) // It was JSON before.
		err = p.To.Exec("/proc/self/exe", os.Args[:1], append(env, asRestricted+"="+string(raw)))
		_, _ = fmt.Fprintln(os.Stdout, "not restricted:", err)
		os.Exit(0)
	}
	var results map[string]Result
	if err == nil {
		results, err = runAll(context.Background(), p.Names, p.Sizes)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(results)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// under makes attempts under a restriction.
func under(t *testing.T, to restricted.To, names []string) map[string]Result {
	t.Helper()
	raw := expect.Value(json.Marshal(parent{To: &to, Sizes: Sizes{File: fileBytes, Locked: 64 << 20}, Names: names}))(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asRestricted+"="+string(raw))
	c.SysProcAttr = to.Attributes()
	out, err := c.Output()
	if os.IsPermission(err) {
		t.Skipf("namespaces are not permitted here: %v", err)
	}
	expect.Must(t, err == nil, "%v: %s", err, out)
	if why, is := strings.CutPrefix(string(out), "not restricted:"); is {
		t.Skipf("not permitted here:%s", why)
	}
	return resultsOf(t, out)
}

const fileBytes = 9637888

// TestRestricted checks what is found out where the kernel really restricts a process.
func TestRestricted(t *testing.T) {
	names := []string{GetMempolicy, Mlock}
	refused := func(call, errno string, bytes int64) Result {
		return Result{Outcome: Refused, Call: call, Errno: errno, Bytes: bytes}
	}
	fits := Result{Outcome: OK, Bytes: fileBytes}
	for name, tt := range map[string]struct {
		to   restricted.To
		want map[string]Result
	}{
		"room for a file":                      {restricted.To{SHM: "size=64m"}, map[string]Result{SharedMemory: fits}},
		"smaller than a file":                  {restricted.To{SHM: "size=1m"}, map[string]Result{SharedMemory: refused("fallocate", "ENOSPC", fileBytes)}},
		"without a limit":                      {restricted.To{SHM: "size=0"}, map[string]Result{SharedMemory: fits}},
		"no programs may be run from /dev/shm": {restricted.To{SHM: "size=64m,noexec"}, map[string]Result{SharedMemory: fits}},
		"no inodes":                            {restricted.To{SHM: "size=64m,nr_inodes=1"}, map[string]Result{SharedMemory: refused("open", "ENOSPC", 0)}},
		"read-only":                            {restricted.To{SHM: "size=64m,ro"}, map[string]Result{SharedMemory: refused("open", "EROFS", 0)}},
		"a file":                               {restricted.To{SHM: "file"}, map[string]Result{SharedMemory: refused("open", "ENOTDIR", 0)}},
		"absent":                               {restricted.To{SHM: "absent"}, map[string]Result{SharedMemory: refused("open", "ENOENT", 0)}},
		"files cannot be given space":          {restricted.To{Deny: []uint32{unix.SYS_FALLOCATE}, Errno: unix.ENOTSUP}, map[string]Result{SharedMemory: refused("fallocate", "ENOTSUP", fileBytes)}},
		"little room": {restricted.To{SHM: "size=12m"}, map[string]Result{
			SharedMemory: {Outcome: Unknown, Reason: "only 12288 KiB are free in /dev/shm, and a file of 9412 KiB could take them from others"},
		}},
		"64 KiB of locked memory": {restricted.To{Powerless: true, Limited: true, Memlock: 64 << 10}, map[string]Result{LockedMemory: refused("mlock2", "ENOMEM", 8<<20), Mlock: {Outcome: OK}}},
		"8 MiB of locked memory":  {restricted.To{Powerless: true, Limited: true, Memlock: 8 << 20}, map[string]Result{LockedMemory: refused("mlock2", "ENOMEM", 64<<20), Mlock: {Outcome: OK}}},
		"no locked memory":        {restricted.To{Powerless: true, Limited: true}, map[string]Result{LockedMemory: refused("mlock2", "EPERM", 64<<10), Mlock: refused("mlock", "EPERM", 0)}},
		"an old kernel":           {restricted.To{Deny: []uint32{unix.SYS_MLOCK2}, Errno: unix.ENOSYS}, map[string]Result{LockedMemory: {Outcome: Unknown, Reason: "this kernel has no mlock2"}}},
		"Docker's filter": {restricted.To{Deny: restricted.NUMACalls, Errno: unix.EPERM}, map[string]Result{
			GetMempolicy: refused("get_mempolicy", "EPERM", 0), Mlock: {Outcome: OK},
		}},
		"a filter that ends the process": {restricted.To{Deny: restricted.NUMACalls}, map[string]Result{
			GetMempolicy: refused("get_mempolicy", "SIGSYS", 0), Mlock: {Outcome: OK},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := slices.Clone(names)
			for name := range tt.want {
				if !slices.Contains(asked, name) {
					asked = append(asked, name)
				}
			}
			got := under(t, tt.to, asked)
			for name, want := range tt.want {
				expect.Equal(t, want, got[name], "%s", name)
			}
		})
	}
}
