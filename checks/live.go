package checks

import (
	"context"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
)

// registerAnswers makes live machines answer the questions that vendor
// libraries answer, each in a child of this binary.
var registerAnswers = sync.OnceFunc(func() {
	machine.Register(machine.AskNVML, func(ctx context.Context, _ string) (any, error) { return nvml.Ask(ctx) })
})
