//go:build cgo && unix

package stdio

/*
#include <fcntl.h>

// gpudoctor_hold_streams occupies the numbers of closed standard streams by
// /dev/null, opened the wrong way round, as the C library does for a program
// that is set-user-ID: reads and writes fail with EBADF. Where there is no
// /dev/null, a folder does the same for output, and Go's runtime does not give
// up.
__attribute__((constructor)) static void gpudoctor_hold_streams(void) {
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) != -1)
			continue;
		int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
		if (got == -1)
			got = open("/", O_RDONLY | O_DIRECTORY);
		if (got != fd)
			return; // Not even that can be opened; the runtime says so.
	}
}
*/
import "C"

// Held reports whether the closed streams were looked for.
const Held = true
