# make, or make help, lists the targets.

BENCH ?= .
PACKAGES ?= ./...

# The packages whose tests compare files.
GOLDEN = $(shell grep -rlE --include='*_test.go' --exclude-dir='.?*' 'expect\.(Golden|Updating)' . | xargs -n 1 dirname | sort -u)

.PHONY: help build test night lint fmt update bench check release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build ./gpudoctor
	go build -o gpudoctor ./cmd/gpudoctor

test: ## run the tests by day: samples of what they enumerate (PACKAGES=./rules for some of them)
	go test $(PACKAGES)

night: ## run all tests whole, with the race detector, fuzz for a minute each, and build the release (hours)
	GPUDOCTOR_TESTS=night go test -tags ci -timeout 120m ./...
	go test -race -timeout 120m ./...
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 1m $$package; \
		done; \
	done
	.ci/release

lint: ## check the format, go.mod, the linters' rules and the prose
	@unformatted=$$(.ci/tool gofumpt -l .) && if [ -n "$$unformatted" ]; then \
		printf 'not formatted by gofumpt (make fmt formats them):\n%s\n' "$$unformatted"; exit 1; fi
	go mod tidy -diff
	go vet -tags ci ./...
	.ci/tool golangci-lint run ./...
	.ci/prose

fmt: ## format the Go files
	.ci/tool gofumpt -w .

update: ## write the files that tests compare with (schemas, tables in docs, goldens)
	go test -run '^TestGolden' $(GOLDEN) -update

bench: ## run the benchmarks (PACKAGES=./rules BENCH=Compile for some of them)
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(PACKAGES)

check: ## run all that a change must pass (.ci/run; slow)
	.ci/run

release: ## build the release of the commit into .out/release
	.ci/release
