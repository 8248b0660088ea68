package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/rules"
)

// metrics is what the template of the metrics shows.
type metrics struct {
	*ciReport
	// Counting and NotCounting are the findings and those that are waived, the same ones together.
	Counting, NotCounting []counted
	Expiries              []expiry
	// Gaps count what was not examined, by the code of the reason.
	Gaps []pair
	// Found counts the rules with findings.
	Found   int
	Seconds string
}

// counted is findings with the same labels.
type counted struct {
	Rule, Subject string
	Severity      rules.Severity
	Confidence    rules.Confidence
	N             int
}

// expiry is when a waiver that is in use ends.
type expiry struct {
	Rule, Owner, Place string
	Ends               int64
}

//go:embed templates/metrics.tmpl
var metricsText string

var metricsTemplate = sync.OnceValue(func() *template.Template {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	return template.Must(template.New("metrics").Funcs(template.FuncMap{"label": func(v any) string { return escape.Replace(fmt.Sprint(v)) }}).Parse(metricsText))
})

// writePrometheus writes metrics for the textfile collector of node_exporter, in the text
// format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/).
func writePrometheus(b *bytes.Buffer, r *ciReport) {
	m := metrics{ciReport: r, Found: len(r.rules), Seconds: strconv.FormatFloat(r.Timing.TotalMS/1000, 'f', -1, 64)}
	for _, i := range r.issues {
		list := &m.Counting
		if i.waived() {
			list = &m.NotCounting
			m.addExpiry(i.waiver)
		}
		one := counted{Rule: i.Rule, Subject: i.Subject, Severity: i.Severity, Confidence: i.Confidence}
		at := slices.IndexFunc(*list, func(o counted) bool { o.N = 0; return o == one })
		if at < 0 {
			at, *list = len(*list), append(*list, one)
		}
		(*list)[at].N++
	}
	for _, code := range reasonCodes {
		if code != ReasonFinding && code != ReasonWaived {
			n := len(slices.DeleteFunc(slices.Clone(r.gaps), func(g Reason) bool { return g.Code != code }))
			m.Gaps = append(m.Gaps, pair{string(code), strconv.Itoa(n)})
		}
	}
	if err := metricsTemplate().Execute(b, m); err != nil {
		panic(fmt.Sprintf("write metrics: %v", err)) // The template is part of the program, and a buffer takes all.
	}
}

// addExpiry adds when a waiver ends, once.
func (m *metrics) addExpiry(w waivers.Waiver) {
	end, err := time.Parse(waivers.DateForm, w.Expires)
	e := lines.Clean(expiry{Rule: w.Rule, Owner: w.Owner, Place: w.Place(), Ends: end.AddDate(0, 0, 1).Unix()}, m.ascii)
	if err == nil && !slices.ContainsFunc(m.Expiries, func(o expiry) bool { return o.Place == e.Place }) {
		m.Expiries = append(m.Expiries, e)
	}
}
