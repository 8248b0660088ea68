package nvidia_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestNvdriverLinks(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"ls -l", "$ ls -l /usr/lib64/libnvidia-ml*\nlrwxrwxrwx. 1 root root 22 Nov  2 10:12 /usr/lib64/libnvidia-ml.so.1 -> libnvidia-ml.so.550.90.07\n", "libnvidia-ml 550.90.07"},
		{"a target with its folder", "libcuda.so.1 -> /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01\n", "libcuda 535.183.01"},
		{"a compatibility library", "lrwxrwxrwx 1 root root 20 May  1 10:00 /usr/local/cuda/compat/libcuda.so.1 -> libcuda.so.570.86.10\n", ""},
		{"no version", "libcuda.so.1 -> libcuda.so\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			for _, p := range texttest.Parse("x.txt", test.text).Software {
				got += p.Name + " " + p.Version
			}
			expect.Equal(t, test.want, got, "it")
		})
	}
}

func FuzzNvdriverLinks(f *testing.F) {
	f.Add("lrwxrwxrwx. 1 root root 22 Nov  2 10:12 /usr/lib64/libnvidia-ml.so.1 -> libnvidia-ml.so.550.90.07\n")
	f.Add("libcuda.so.1 -> /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01\r\nlibcuda.so.1 -> \n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range texttest.Parse("x", text).Software {
			expect.That(t, p.Name != "" && p.Version != "", "a library without name or version: %+v", p)
		}
	})
}
