{{- /* What marks an object as part of a hook; (dict "root" . "weight" 0). */ -}}

{{- define "ibrik.uninstall.hook" -}}
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  helm.sh/hook-weight: {{ .weight | quote }}
labels:
  {{- include "ibrik.labels" .root | nindent 2 }}
  app.kubernetes.io/component: uninstall
{{- end -}}

{{- define "ibrik.test.hook" -}}
annotations:
  helm.sh/hook: test
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
  helm.sh/hook-weight: {{ .weight | quote }}
labels:
  {{- include "ibrik.labels" .root | nindent 2 }}
  app.kubernetes.io/component: test
{{- end -}}
