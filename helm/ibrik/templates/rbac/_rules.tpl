{{- /* What the operator may do, rule by rule. tests/helm/test_rights.py lists them again: a right that is
added here has to be defended there. */ -}}

{{- /* In every namespace that is served. */ -}}
{{- define "ibrik.rules.served" -}}
- apiGroups: [ibrik.dev]
  resources: [topics, subscriptions, channels]
  verbs: [get, list, watch, patch]
# The pool `default` appears by itself, so pools are also created.
- apiGroups: [ibrik.dev]
  resources: [brokerpools]
  verbs: [get, list, watch, create, patch]
- apiGroups: [ibrik.dev]
  resources: [brokerpools/status, topics/status, subscriptions/status, channels/status]
  verbs: [patch]
# Some clusters ask for this before an object may name a pool as its owner.
- apiGroups: [ibrik.dev]
  resources: [brokerpools/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch]
# The operator makes the admin token of each pool, and copies what channels name into one Secret of the
# pool; a Kubernetes role cannot say "only those". It deletes none, and writes none that it did not make.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
# Rolling a pool is deleting its pods, one at a time.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
# Growing a volume is patching its claim; the volumes of tables are created. None is ever deleted.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
# Archive jobs on a schedule, with Spark's operator or without. They are looked at, not watched.
- apiGroups: [sparkoperator.k8s.io]
  resources: [scheduledsparkapplications]
  verbs: [get, list, create, patch, delete]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [get, list, create, patch, delete]
# Runs that somebody asked for; deleted are those that never began.
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, create, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, create]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}

{{- /* Of what belongs to no namespace: does its class let a volume grow, is a namespace going away. */ -}}
{{- define "ibrik.rules.cluster" -}}
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [get]
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end -}}

{{- /* Deleting a namespace deletes the Role in it, maybe before what is protected there was let go.
The right to do that must outlive the Role. */ -}}
{{- define "ibrik.rules.leaving" -}}
- apiGroups: [ibrik.dev]
  resources: [topics, subscriptions]
  verbs: [patch]
{{- end -}}

{{- define "ibrik.rules.definitions" -}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end -}}

{{- /* Who uninstalls releases finalizers, in every namespace that is served. */ -}}
{{- define "ibrik.rules.uninstall" -}}
- apiGroups: [ibrik.dev]
  resources: [brokerpools, topics, subscriptions, channels]
  verbs: [get, list, patch]
{{- end -}}

{{- define "ibrik.subject" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "ibrik.serviceAccount" . }}
    namespace: {{ .Release.Namespace }}
{{- end -}}
