package complaint

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestWrite(t *testing.T) {
	base := errors.New("read host\x1b[2J.txtar: no\nsuch thing")
	var b bytes.Buffer
	Write(&b, Hinted(fmt.Errorf("open: %w", Hinted(base, "inner")), "outer"))
	expect.NoDiff(t, "gpudoctor: open: read host\\x1b[2J.txtar: no such thing\nhint: outer\nhint: inner\n", b.String(), "it")
}
