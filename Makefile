# `make` lists what there is to make. Nothing but Go and make is needed.

# The Matrix library's encryption is pure Go with the tag goolm, so there is no C
# anywhere: one static binary. Flags of your own in GOFLAGS are kept.
export CGO_ENABLED = 0
override GOFLAGS := $(strip $(filter-out -tags=% -buildvcs=%,$(GOFLAGS)) -buildvcs=false -tags=goolm)
export GOFLAGS

COMMIT   ?= $(shell git describe --always --dirty --exclude "*" 2>/dev/null || echo unknown)
FUZZTIME ?= 20s

# The message goes through the environment and make never looks into it, so that
# it may hold quotes, dollars and line breaks.
unexport MESSAGE
export REVERIE_TRY_MESSAGE = $(value MESSAGE)

# Flags for the modules beside the bot's own: the homeserver and the tools.
OTHER_MODULE = GOFLAGS=-buildvcs=false GOWORK=off

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: faults help build weights homeserver try release test check unit race fuzz bench year survival manners longchats recall attacks storm look clean docker-check go tools

help: ## list what there is to make
	@echo 'make try is the quickest way to see Reverie. All there is:'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='|' read -r name what; do printf '  make %-14s%s\n' "$$name" "$$what"; done

# Libraries without inlining make the program 1.9 MB smaller.
BUILD = go build -trimpath -gcflags=github.com/...=-l -gcflags=google.golang.org/...=-l -gcflags=maunium.net/...=-l -ldflags '-s -w -X main.commit=$(COMMIT)'

build: weights ## build the bot: bin/bot, one static file; and bin/try for `make try`
	@$(BUILD) -o bin/ ./cmd/bot ./cmd/try

# The same tree makes the same bytes: times are those of the commit.
VERSION = $(shell sed -n 's/^const version = "\(.*\)"/\1/p' cmd/bot/main.go)
release: export VERSION := $(VERSION)
release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1767225600)
release: weights tools ## make dist/: programs, .deb and .rpm for amd64 and arm64, what they are made of, checksums
	@rm -rf dist && mkdir dist
	@set -e; for arch in amd64 arm64; do \
		program=dist/reverie_$(VERSION)_linux_$$arch; \
		GOOS=linux GOARCH=$$arch $(BUILD) -o $$program ./cmd/bot; \
		go run ./internal/tools/sbom $(VERSION) $$program > $$program.cdx.json; \
		for kind in deb rpm; do \
			ARCH=$$arch PROGRAM=$$program bin/tools/nfpm package --config deploy/nfpm.yaml --packager $$kind --target dist/; \
		done; \
	done
	@cd dist && sha256sum * > SHA256SUMS && ls -l


weights: go ## fetch what memory is searched by meaning with (by npm, once; it builds without)
	@go run ./internal/tools/weights

homeserver: go ## build the homeserver for `make try` and the tests (once)
	@go run ./test/buildhomeserver

try: build homeserver ## chat in a real encrypted room; MESSAGE="..." sends one message, KEEP=1 keeps the state
	@bin/try --homeserver-bin bin/homeserver $(if $(filter-out 0 no false,$(KEEP)),--keep)

test: weights check homeserver unit ## check everything and run all tests

check: tools
	@bad=$$(gofmt -l . 2>&1); if [ -n "$$bad" ]; then echo 'FAIL  gofmt: run gofmt -w on'; echo "$$bad"; exit 1; fi
	@echo 'ok    gofmt'
	@go vet ./... && echo 'ok    vet'
	@bin/tools/staticcheck ./... && echo 'ok    staticcheck'
	@out=$$(bin/tools/govulncheck ./... 2>&1); status=$$?; \
	case "$$status:$$out" in \
	0:*) echo 'ok    govulncheck' ;; \
	1:*'fetching vulnerabilities:'*) echo 'skip  govulncheck: vulnerability database not reachable, skipped' ;; \
	*) echo "$$out"; echo 'FAIL  govulncheck'; exit 1 ;; \
	esac

# The tests under test/ run the built binary and the homeserver, which the test
# cache does not see: they always run. What is unchanged elsewhere need not.
# The packages that take longest are named first, so that none runs alone in the end.
unit:
	@status=0; \
	go test -timeout 20m ./internal/session ./internal/matrix ./cmd/bot ./internal/memory $$(go list ./... | grep -v '^reverie/test') || status=1; \
	go test -timeout 20m -count=1 ./test/... || status=1; \
	exit $$status

race: export CGO_ENABLED = 1
race: go homeserver ## run all tests under the race detector (needs a C compiler)
	@command -v "$$(go env CC)" >/dev/null || { echo 'make race needs a C compiler: install gcc or clang.' >&2; exit 1; }
	@go test -race -timeout 40m -count=1 ./...

# A fuzzer that is cut off at the end of its time may report just that, and
# nothing found; only an input that fails is a failure.
fuzz: go ## run each fuzzer for FUZZTIME (20s)
	@set -e; for file in $$(grep -rl --include='*_test.go' '^func Fuzz' cmd internal); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' "$$file"); do \
			echo "$$name in $$(dirname "$$file")"; \
			out=$$(go test -run='^$$' -fuzz="^$$name$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x "./$$(dirname "$$file")" 2>&1) || \
				case "$$out" in \
				*'Failing input written'*) echo "$$out"; exit 1 ;; \
				*'context deadline exceeded'*) ;; \
				*) echo "$$out"; exit 1 ;; \
				esac; \
			echo "$$out" | grep -E '^fuzz: elapsed' | tail -1; \
		done; \
	done

bench: build homeserver ## measure what it promises beside the plain ways: speed, memory, size; GROUP=search measures one group, JSON=1 prints JSON
	@go run ./test/bench $(if $(JSON),-json) $(GROUP)

recall: go ## measure how much is found of the labelled sets in the folder SETS; test/recall/README.md says how one is made
	@go run ./test/recall -sets '$(SETS)' -cache '$(CACHE)'

year: go ## live a year of 40 messages a day with a virtual clock, and log what it costs, by month; DAYS=n for another length
	@REVERIE_YEAR=$(or $(DAYS),365) go test -count=1 -timeout 3h -v -run '^TestYear$$' ./cmd/bot

survival: go ## dream for thirty nights with models that err, lie or do harm, and count the facts that are left
	@go run ./test/survival

longchats: go ## ask about months of chats, and count how much of what answers is recalled
	@go run ./test/longchats -cache "$${TMPDIR:-/tmp}/reverie-vectors"

manners: go ## have 12 talks of 100 turns with 5 personas and a model that forgets its style, and count what is kept
	@go run ./test/manners

attacks: go ## have models that obey every text they read attack the assistant, and count what they do without an approval
	@go test -count=1 -v -run '^TestInjections$$|^TestOrdinaryRequests$$|^TestRecalledBeforeAFailedAnswer$$|^TestEverydayTalks$$|^TestApprovalAttacks$$|^TestNothingLeaks$$|^TestPagesSendNothingOut$$|^TestWebNeedsNoApproval$$|^TestProgramsGiveNoOrders$$|^TestProgramNeedsNoApproval$$|^TestFilesAsCarriers$$|^TestOwnFilesNeedNoApproval$$|^TestSkillFromOutsideAttacks$$|^TestVoteIsNotThePersonsWords$$|^TestShellIsApproved$$|^TestForeignManner$$' ./internal/session

storm: go homeserver ## kill the bot 300 times while people talk to it, 40 times on the real homeserver, 200 times each at due times and in workflows, 300 times around approvals; start 1000 programs of MCP servers; STORM=n for another number
	@REVERIE_STORM=$(or $(STORM),300) go test -count=1 -timeout 60m -v -run '^TestStorm$$' ./test
	@REVERIE_STORM=$(or $(STORM),40) go test -count=1 -timeout 60m -v -run '^TestStormOnTheHomeserver$$' ./test
	@REVERIE_JOB_KILLS=$(or $(STORM),200) go test -count=1 -timeout 60m -v -run '^TestStormOfProcesses$$' ./internal/task
	@REVERIE_SUB_KILLS=$(or $(STORM),200) go test -count=1 -timeout 60m -v -run '^TestKilledWorkflows$$' ./internal/session
	@REVERIE_PROGRAM_STARTS=$(or $(STORM),1000) go test -count=1 -timeout 60m -v -run '^TestManyStarts$$' ./internal/tool/mcp
	@REVERIE_APPROVAL_KILLS=$(or $(STORM),300) go test -count=1 -timeout 60m -v -run '^TestApprovalsSurviveKills$$' ./internal/session

faults: go ## write and show docs/faults.md: faults, defects seen elsewhere, manners, and the tests that hold them
	@go test -count=1 -run '^TestFaults$$' ./internal -update >&2
	@cat docs/faults.md

look: go homeserver ## show what people see: a web client and the inspector in Chromium, pictures in look/
	@REVERIE_LOOK=$(CURDIR)/look go test -count=1 -timeout 10m -v -run '^TestLook' ./test

docker-check: ## check docker-compose.yml, when docker compose is there
	@if docker compose version >/dev/null 2>&1; then docker compose config -q && echo 'ok    docker compose config'; \
	else echo 'skip  docker compose config: docker compose is not installed'; fi

clean: ## remove what was built (never your data)
	rm -rf bin dist internal/llm/encoder/weights/*.q8

tools: go
	@mkdir -p bin/tools
	@$(OTHER_MODULE) go build -C tools -mod=readonly -trimpath -o ../bin/tools/ \
		honnef.co/go/tools/cmd/staticcheck golang.org/x/vuln/cmd/govulncheck
	@$(OTHER_MODULE) go build -C tools/nfpm -mod=readonly -trimpath -o ../../bin/tools/ github.com/goreleaser/nfpm/v2/cmd/nfpm

go:
	@command -v go >/dev/null || { echo 'Go 1.26 or newer is needed: https://go.dev/dl/' >&2; exit 1; }
	@have=$$(go env GOVERSION 2>&1); case "$$have" in \
	go1.2[6-9]*|go1.[3-9][0-9]*|go[2-9]*|devel*) ;; \
	*) echo "Go 1.26 or newer is needed (https://go.dev/dl/); here is: $$have" >&2; exit 1 ;; \
	esac
