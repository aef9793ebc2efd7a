# The verbs of this project; `make help` lists them. Everything runs in .venv, which is made when missing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
S3_STAMP := $(VENV)/s3/.installed
RUNS ?= 200
FLIPS ?= 10000
TOPIC ?= orders
topic ?= $(TOPIC)
STRATEGY ?= round_robin
DATA ?= ./data
IMAGE_TAG ?= dev
KIND_NODE_IMAGE ?= kindest/node:v1.34.4
KIND_CLUSTER ?= e2e
KUBE_ASSETS ?=
# What tests/coverage_floor.py judges is covered by these; measuring makes a test twice as slow.
COVERED := tests/log tests/broker/partitions tests/broker/http tests/broker/topics
ON_KIND = KIND_CLUSTER=$(KIND_CLUSTER) KIND_NODE_IMAGE=$(KIND_NODE_IMAGE) IMAGE_TAG=$(IMAGE_TAG) $(BIN)/python -m

.DEFAULT_GOAL := help

$(STAMP): requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info[:2] <= (3, 13) else "Ibrik needs Python 3.11 to 3.13; this is %d.%d. Run: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

$(S3_STAMP): requirements/s3.lock
	$(PYTHON) -m venv $(VENV)/s3
	$(VENV)/s3/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/s3.lock
	@touch $(S3_STAMP)

##@ Everyday
setup: $(STAMP) ## Make the virtual environment from the lock file
demo: $(STAMP) ## A broker, 336,776 real flights, a hard kill, and proof that nothing was lost
	$(BIN)/python examples/quickstart/demo.py
demo-webhooks: $(STAMP) ## 329 real webhooks, four endpoints of which three are in trouble, exact counts
	$(BIN)/python examples/webhooks/demo.py
demo-shared: $(STAMP) ## A group of four workers, two of them killed; every flight accounted for
	$(BIN)/python examples/shared-group/demo.py
lake-demo: $(STAMP) ## 336,776 flights into a table, the job killed three times, every flight exactly once
	$(BIN)/python examples/lake/demo.py
test: check $(S3_STAMP) ## All that gates a change: check, property, contract, integration, crash and bit-flip tests, coverage
	$(BIN)/python tests/coverage_floor.py
	$(BIN)/python -m pytest -n 2 -m slow tests
	$(BIN)/python -m tests.crash --runs 10
	$(BIN)/python -m tests.crash_delivery --runs 3
	$(BIN)/python -m tests.crash_archive --runs 3
	$(BIN)/python -m tests.bitflips --flips 500
check: fmt-check lint types imports generated $(STAMP) ## Format, types, imports, unit tests
	$(BIN)/python -m pytest -n 2 -m "not slow" --cov --cov-report= $(COVERED)
	$(BIN)/python -m pytest -n 2 -m "not slow" $(COVERED:%=--ignore=%) tests

##@ Parts of check
fmt: $(STAMP) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .
fmt-check: $(STAMP)
	$(BIN)/ruff format --check --quiet .
lint: $(STAMP) ## Lint the code
	$(BIN)/ruff check --quiet .
types: $(STAMP) ## Check the types (mypy strict)
	$(BIN)/mypy
imports: $(STAMP) ## Check who may import whom
	$(BIN)/lint-imports

##@ Generated pages
generate: $(STAMP) ## Write crds/*.yaml and the reference pages (errors, settings, metrics, CLI, OpenAPI) anew
	$(BIN)/python docs/generate.py
docs: generate ## The same: all that is generated of the documentation
generated: $(STAMP)
	$(BIN)/python docs/generate.py --check
lock: $(STAMP) ## Resolve the lock files anew (no index lines)
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --allow-unsafe --extra broker --extra operator --extra spark --extra dev --output-file requirements/dev.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --extra broker --output-file requirements/broker.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --extra operator --output-file requirements/operator.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --extra spark --output-file requirements/spark.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --only-build-deps --build-deps-for wheel --output-file requirements/build.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header --generate-hashes --output-file requirements/s3.lock requirements/s3.in

##@ Proof
crash: $(STAMP) ## Kill a real broker under load RUNS times, and the simulated disk at random operations
	$(BIN)/python -m tests.crash --runs $(RUNS)
crash-delivery: $(STAMP) ## Kill a real broker RUNS times while it delivers to failing sinks, on SQLite and on Postgres
	$(BIN)/python -m tests.crash_delivery --runs $(RUNS)
crash-archive: $(STAMP) ## Kill archive jobs RUNS times, let two race; table and log must be equal
	$(BIN)/python -m tests.crash_archive --runs $(RUNS)
sim: $(STAMP) ## Only the simulated disk: 5,000 lives with crashes at random operations
	$(BIN)/python -m tests.crash --runs 0 --simulations 5000
bitflips: $(STAMP) ## Flip FLIPS single bits in sealed segments; every one must be noticed
	$(BIN)/python -m tests.bitflips --flips $(FLIPS)
api: $(STAMP) ## Ask both HTTP doors what their OpenAPI documents promise (schemathesis), and draw their pages
	$(BIN)/python -m pytest -q tests/contract
apitest: $(STAMP) ## A real API server, its controllers, the operator and brokers (KUBE_ASSETS=folder of etcd, kube-apiserver, kube-controller-manager, kubectl, helm)
	KUBE_ASSETS="$(KUBE_ASSETS)" $(BIN)/python -m pytest -q -n 2 tests/apiserver
interop: $(STAMP) ## Let aiokafka's pure decoder and Kafka's own DumpLogSegments read our segments (needs Java and Maven)
	$(BIN)/python -m tests.interop
lake-readers: $(STAMP) ## Let delta-rs and Spark 4.0 with Delta's own reader count a table of the archive job (needs Java and Maven)
	$(BIN)/python -m tests.lake_readers
bench: $(STAMP) ## Measure beside peers in the same run; prints ratios (needs redis-server and wrk)
	$(BIN)/python -m bench
bench-operator: $(STAMP) ## Measure the operator with 1,000 Topics and 2,000 Subscriptions on a real API server (KUBE_ASSETS as for apitest)
	KUBE_ASSETS="$(KUBE_ASSETS)" $(BIN)/python -m bench.operator
bench-cluster: $(STAMP) images ## Measure on a kind cluster: a pool from nothing, publishing from a pod (as for e2e)
	$(ON_KIND) bench.cluster
bench-spark: $(STAMP) ## Measure reading sealed segments into Arrow, and the archive job (needs Java 17)
	$(BIN)/python -m bench segments archive beside

##@ As in the Kafka-like service
run: $(STAMP) ## Start a broker for development on DATA
	$(BIN)/ibrik serve --dev --data $(DATA)
create-topic: $(STAMP) ## Create TOPIC with STRATEGY=round_robin|key|sticky
	$(BIN)/ibrik topic create $(TOPIC) --partitioner $(STRATEGY)
list-topics: $(STAMP) ## List the topics
	$(BIN)/ibrik topic ls
producer: $(STAMP) ## Publish each line of standard input to topic=…
	$(BIN)/ibrik produce $(topic)
consumer: $(STAMP) ## Follow topic=…
	$(BIN)/ibrik consume $(topic) --from earliest --follow

##@ On a cluster
images: ## Build the images of the broker and the operator, with the tag IMAGE_TAG
	docker build --quiet --tag ibrik/broker:$(IMAGE_TAG) --file Dockerfile.broker .
	docker build --quiet --tag ibrik/operator:$(IMAGE_TAG) --file Dockerfile.operator .
image-spark: ## Build the image of the archive jobs, with the tag IMAGE_TAG (some 1.5 GB)
	docker build --quiet --tag ibrik/spark:$(IMAGE_TAG) --file Dockerfile.spark .
kind-up: ## Make the kind cluster KIND_CLUSTER when it is not there
	@kind get clusters --quiet | grep -qx $(KIND_CLUSTER) \
	  || kind create cluster --name $(KIND_CLUSTER) --image $(KIND_NODE_IMAGE) --wait 120s
deploy: images ## Load the images into the cluster, install or upgrade the chart, wait for the operator
	kind load docker-image --name $(KIND_CLUSTER) ibrik/broker:$(IMAGE_TAG) ibrik/operator:$(IMAGE_TAG)
	helm upgrade --install ibrik helm/ibrik --kube-context kind-$(KIND_CLUSTER) --namespace ibrik-system \
	  --create-namespace --set image.tag=$(IMAGE_TAG) --wait --timeout 3m \
	  --set operator.podAnnotations.image=$$(docker image inspect --format '{{.Id}}' ibrik/operator:$(IMAGE_TAG))
e2e: $(STAMP) images ## One behaviour after another on a kind cluster of its own (KIND_CLUSTER, KIND_NODE_IMAGE, E2E_KEEP=1)
	$(ON_KIND) pytest --timeout 600 --durations 0 -m "not full and not archive" e2e
e2e-archive: $(STAMP) images image-spark ## Archive jobs by a real Spark operator, on a kind cluster (SPARK_OPERATOR_CHART, SPARK_OPERATOR_IMAGE)
	$(ON_KIND) pytest --timeout 900 --durations 0 -m archive e2e
e2e-full: $(STAMP) images image-spark ## All of these and what takes longer: at least before a release
	$(ON_KIND) pytest --timeout 600 --durations 0 e2e
kind-down: ## Delete the kind cluster KIND_CLUSTER
	kind delete cluster --name $(KIND_CLUSTER)

clean: ## Remove what this Makefile made (never a data folder)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .demo .bench

help: ## Show this list
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  \033[36m%-15s\033[0m%s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup demo demo-webhooks demo-shared lake-demo test check fmt fmt-check lint types imports generate docs generated lock crash crash-delivery crash-archive sim bitflips api apitest interop lake-readers bench bench-operator bench-cluster bench-spark run create-topic list-topics producer consumer images image-spark kind-up deploy kind-down e2e e2e-archive e2e-full clean help
