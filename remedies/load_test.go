package remedies

import (
	"testing"
)

func TestLoad(t *testing.T) {
	s, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Remedies()) == 0 {
		t.Error("no remedies")
	}
}
